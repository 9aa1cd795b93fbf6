#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/snapshot.h"
#include "base/status.h"
#include "ivy/encode/encode_request.h"
#include "ivy/encode/text_request.h"
#include "model/model_folder.h"

namespace bouquet::ivy {

/// Inputs → rows: the encoder, or a fake in tests. Runs on the caller's executor and resumes there.
/// Errors: see Encoder::Encode. It must end when its deadline has passed.
using EncodeFunction =
    std::function<boost::asio::awaitable<Result<EncodedRows>>(EncodeRequest request)>;

/// Texts → tokens, ids → text: of the encoder, or a fake in tests. As above. Errors: see
/// Encoder::ReadTexts.
using TextFunction =
    std::function<boost::asio::awaitable<Result<std::vector<TextAnswer>>>(TextRequest request)>;

struct Readiness {
  bool ready = false;
  std::string reason;         // when not: what is being waited for, or what is wrong
  size_t replicas = 0;        // behind a network; 0: the engine is in this process
  size_t replicas_ready = 0;  // of these
};

/// What only the loaded engine knows.
struct EngineFacts {
  std::string device = "cpu";      // "cpu", "cuda"
  std::string device_description;  // "cpu, 2 threads, avx512"
  std::string dtype = "float32";   // of the computation
  int64_t step_tokens = 0;
  int64_t max_batch_sequences = 0;
  std::string numerics;  // fingerprint: dtype, kernels, version
};

/// A model as the gateway offers it: how its requests are read, and who answers them. The functions
/// are not called before the gateway has been told that the model is ready.
struct ServedModel {
  std::string name;
  std::vector<std::string> aliases;
  model::ModelFolder folder;
  EncodeFunction encode;
  TextFunction read_texts;
  /// Whether it makes progress, once loaded. Must not block: health checks call it. Optional.
  std::function<Readiness()> progress;
};

/// A served model and what is learned about it. Thread: any.
class ModelEntry {
 public:
  explicit ModelEntry(ServedModel served)
      : name_(served.name), aliases_(served.aliases), served_(std::move(served)) {}

  const std::string& name() const { return name_; }
  const std::vector<std::string>& aliases() const { return aliases_; }
  /// As it is now. A request keeps what it began with.
  std::shared_ptr<const ServedModel> served() const { return served_.Current(); }
  /// For requests that begin from now on. Name and aliases stay (CHECK).
  void Replace(ServedModel served);
  /// Shown by health checks until the model is ready: "reading weights, 40 %".
  void SetLoading(std::string progress);
  /// Once.
  void SetReady(EngineFacts facts);
  bool loaded() const { return loaded_.load(std::memory_order_acquire); }
  /// Only once loaded.
  const EngineFacts& facts() const;
  Readiness Check() const;

 private:
  const std::string name_;
  const std::vector<std::string> aliases_;
  Snapshot<ServedModel> served_;
  EngineFacts facts_;  // written before loaded_ turns true, read only after
  std::atomic<bool> loaded_ = false;
  mutable std::mutex mutex_;
  std::string loading_ = "the model is being loaded";
};

/// The models of a gateway; the first is the default one. Read only after start. Thread: any.
class ModelTable {
 public:
  /// Error: kInvalidArgument for no model at all, or a name or alias that is empty or given twice.
  static Result<ModelTable> From(std::vector<ServedModel> models);

  /// An empty name means the default model. Error: kNotFound with the names that are served.
  Result<ModelEntry*> Find(std::string_view name) const;
  /// The same, and kUnavailable, saying what it waits for, unless it is loaded.
  Result<ModelEntry*> FindLoaded(std::string_view name) const;
  const std::vector<std::unique_ptr<ModelEntry>>& entries() const { return entries_; }

 private:
  std::vector<std::unique_ptr<ModelEntry>> entries_;
};

}  // namespace bouquet::ivy
