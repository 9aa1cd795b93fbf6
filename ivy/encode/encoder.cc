#include "ivy/encode/encoder.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ivy/encode/chunk_sender.h"
#include "ivy/encode/gatherer.h"
#include "ivy/encode/splitter.h"
#include "ivy/encode/text_job.h"

namespace bouquet::ivy {

Result<std::shared_ptr<Encoder>> Encoder::Create(const EncoderOptions& options, TextSource source,
                                                 TokenizeStage& tokenize_stage, ReplicaPool& pool,
                                                 const Timers& timers) {
  const int32_t admitted = pool.Describe().max_input_tokens;
  if (options.max_input_tokens > admitted) {
    return InvalidArgument(
        fmt::format("--max-input-tokens must be at most what the inference server admits: {}, it "
                    "admits {}",
                    options.max_input_tokens, admitted),
        "max-input-tokens");
  }
  return std::shared_ptr<Encoder>(
      new Encoder(options, std::move(source), tokenize_stage, pool, timers));
}

Encoder::Encoder(const EncoderOptions& options, TextSource source, TokenizeStage& tokenize_stage,
                 ReplicaPool& pool, const Timers& timers)
    : source_(std::move(source)), tokenize_stage_(tokenize_stage), pool_(pool), timers_(timers) {
  const ReplicaDescription& replica = pool.Describe();
  limits_.vocabulary_rows =
      options.vocabulary_rows > 0 ? options.vocabulary_rows : replica.vocabulary_rows;
  limits_.model_max_tokens = replica.model_max_tokens;
  limits_.max_input_tokens =
      options.max_input_tokens > 0 ? options.max_input_tokens : replica.max_input_tokens;
  limits_.max_request_tokens = options.max_tokens_per_request;
  chunk_tokens_ = std::clamp(options.chunk_tokens, 1, std::max(replica.step_tokens, 1));
}

boost::asio::awaitable<Result<EncodedRows>> Encoder::Encode(EncodeRequest request) {
  const int32_t width = pool_.Describe().width;
  if (request.output.dimensions > static_cast<uint32_t>(width)) {
    co_return InvalidArgument(
        fmt::format("dimensions must be 1..{}: {}", width, request.output.dimensions),
        "dimensions");
  }
  if (request.output.dtype != model::RowDtype::kFloat32) {
    co_return Unimplemented("rows are answered in float32 only", "output_dtype");
  }
  if (!request.cancelled.stop_possible()) {
    request.cancelled = std::stop_source();  // a chunk that fails cancels the others
  }
  CO_ASSIGN_OR_RETURN(TokenizedInputs inputs,
                      co_await tokenize_stage_.Run(request, source_, limits_));
  Gatherer gatherer(inputs.sequences, inputs.tokenize_us);
  const std::vector<ChunkRange> ranges = SplitByTokens(gatherer.token_counts(), chunk_tokens_);
  ChunkSender sender(pool_, request, std::move(inputs.sequences), tokenize_stage_.clock(), timers_);
  CO_RETURN_IF_ERROR(co_await sender.Send(ranges, gatherer));
  co_return gatherer.Take();
}

boost::asio::awaitable<Result<std::vector<TextAnswer>>> Encoder::ReadTexts(TextRequest request) {
  if (source_.pipeline == nullptr) {
    co_return Unimplemented("this model takes token ids only: " + source_.no_text_reason,
                            request.field);
  }
  auto job = std::make_shared<TextJob>(request, limits_.max_request_tokens, source_,
                                       tokenize_stage_.clock());
  CO_RETURN_IF_ERROR(co_await tokenize_stage_.Run(job));
  co_return std::move(job->answers());
}

}  // namespace bouquet::ivy
