#pragma once

#include "ivy/dispatch/replica.h"

namespace bouquet::tulip {
class Core;
}  // namespace bouquet::tulip

namespace bouquet::ivy {

/// A replica in this process: no network hop and no serialisation, sequences are moved into a
/// tulip::Core. Executors whose coroutines wait here must live until the core has stopped.
class InProcessReplica final : public Replica {
 public:
  /// `core` must outlive the replica.
  explicit InProcessReplica(tulip::Core& core);

  std::string_view name() const override { return "in process"; }
  std::optional<ReplicaDescription> Describe() const override { return description_; }
  boost::asio::awaitable<Result<ChunkRows>> Submit(Chunk chunk) override;
  ReplicaLoad Load() const override;

 private:
  tulip::Core& core_;
  ReplicaDescription description_;
};

}  // namespace bouquet::ivy
