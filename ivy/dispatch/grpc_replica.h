#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/calls_under_way.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "ivy/dispatch/probe_schedule.h"
#include "ivy/dispatch/replica.h"
#include "ivy/dispatch/replica_ledger.h"

namespace bouquet::ivy {

struct GrpcReplicaOptions {
  std::string address;  // HOST:PORT or unix:PATH
  ProbeSchedule::Options probe;
  /// A replica that does not answer a probe in this time is lost: whatever it has goes elsewhere.
  std::chrono::milliseconds probe_timeout{2000};
};

/// A Tulip behind a network. A thread of its own asks it regularly how it is doing; between two
/// answers it is ready or it is not, and Submit does not find out for itself. What is under way on
/// a replica that is lost or stalled ends with kUnavailable at once. What it concludes from all
/// this is ReplicaLedger's; this speaks gRPC.
class GrpcReplica final : public Replica {
 public:
  /// `admit` is asked, on the probing thread, each time the replica has been found anew; a replica
  /// that it refuses gets no work. Everything given must outlive this.
  using Admit = std::function<Status(const ReplicaDescription&)>;
  GrpcReplica(GrpcReplicaOptions options, Admit admit, Metrics& metrics, const Clock& clock);
  /// Ends what is under way with kUnavailable.
  ~GrpcReplica() override;
  GrpcReplica(const GrpcReplica&) = delete;
  GrpcReplica& operator=(const GrpcReplica&) = delete;

  std::string_view name() const override { return options_.address; }
  std::optional<ReplicaDescription> Describe() const override;
  boost::asio::awaitable<Result<ChunkRows>> Submit(Chunk chunk) override;
  ReplicaLoad Load() const override;

 private:
  struct Call;
  struct Connection;

  void ProbeRegularly();
  ReplicaLedger::ProbeAnswer Probe();
  void Learn(ReplicaLedger::ProbeAnswer answer);
  void CancelCalls();

  Status CheckRoom(int64_t num_tokens) const;
  Status Start(const std::shared_ptr<Call>& call, const Deadline& deadline);
  void NoteAnswer(const Call& call);
  void PublishLoad();  // `mutex_` is held
  Status ErrorOf(const Call& call, bool cancelled);

  const GrpcReplicaOptions options_;
  const Admit admit_;
  const Clock& clock_;
  const std::unique_ptr<Connection> connection_;

  Gauge& ready_;
  Gauge& queued_tokens_;
  CallsUnderWay<Call> calls_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  ReplicaLedger ledger_;
  bool stopping_ = false;
  std::thread probing_;
};

}  // namespace bouquet::ivy
