// Random steps for a long time, for tests/gpu/soak.py, which watches the process's memory
// meanwhile.
//
//   engine_soak MODEL STEPS [NAME=VALUE ...]        NAME=VALUE: see bench/engine_arguments.h
//
// A step holds 1 to 64 sequences, drawn from a fixed pool of sequences of 1 to 300 tokens. As many
// steps are under way as the device takes. Every row must be finite and, but for
// 1 - cosine <= 1e-4, the row that its sequence alone gave in an engine of its own. At the end the
// first steps are repeated and must give the same bits. Prints a JSON object a line:
// {"steps": N, "rss_bytes": B, "worst": D} at 10,000 steps (or a tenth) and every tenth, and at the
// end {"done": true, "graphs": {…}}. Exit code 1 with a line on standard error when something
// differs.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <deque>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "bench/engine_arguments.h"
#include "model/model_folder.h"
#include "rose/batch.h"
#include "rose/engine.h"
#include "testing/cosine_distance.h"

namespace bouquet::rose {
namespace {

constexpr int32_t kMaxSequences = 64;
constexpr int32_t kMaxLength = 300;
constexpr size_t kPool = 256;
constexpr int64_t kRepeatedSteps = 1000;
constexpr double kMaxDistance = 1e-4;
constexpr uint64_t kSeed = 1;

using Row = std::vector<float>;

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

uint64_t HashOf(std::span<const std::byte> bytes) {  // FNV-1a
  uint64_t hash = 0xCBF29CE484222325U;
  for (const std::byte byte : bytes) {
    hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001B3U;
  }
  return hash;
}

/// Sequences of all lengths, the shortest and the longest included.
std::vector<std::vector<int32_t>> MakePool(int32_t vocabulary_rows) {
  std::mt19937_64 random(kSeed);
  std::vector<std::vector<int32_t>> pool;
  for (size_t i = 0; i < kPool; ++i) {
    const size_t length = i == 0 ? 1 : i == 1 ? kMaxLength : 1 + random() % kMaxLength;
    std::vector<int32_t>& ids = pool.emplace_back();
    for (size_t token = 0; token < length; ++token) {
      ids.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(vocabulary_rows)));
    }
  }
  return pool;
}

/// The steps in their order; the same again after each construction.
class Draw {
 public:
  /// Indices into the pool: every other step is a short one, as a query is.
  std::vector<size_t> Next() {
    const bool is_short = random_() % 2 == 0;
    std::vector<size_t> members(1 + random_() % (is_short ? 4 : kMaxSequences));
    for (size_t& member : members) {
      member = random_() % kPool;
    }
    return members;
  }

 private:
  std::mt19937_64 random_{kSeed};
};

class Soak {
 public:
  Soak(const model::ModelFolder& folder, const EngineOptions& options)
      : folder_(folder), options_(options) {}

  Status Run(int64_t steps) {
    RETURN_IF_ERROR(ComputeExpectedRows());
    ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, Engine::Load(folder_, options_));
    const int64_t settled = std::min<int64_t>(10'000, steps / 10);
    const int64_t tenth = std::max<int64_t>(1, steps / 10);
    RETURN_IF_ERROR(Steps(*engine, steps, [&](int64_t done) {
      if (done == settled || done % tenth == 0 || done == steps) {
        std::cout << fmt::format("{{\"steps\": {}, \"rss_bytes\": {}, \"worst\": {:.3e}}}\n", done,
                                 ResidentBytes(), worst_)
                  << std::flush;
      }
    }));
    is_repetition_ = true;
    RETURN_IF_ERROR(Steps(*engine, std::min(steps, kRepeatedSteps), [](int64_t /*done*/) {}));
    const GraphCounts graphs = engine->graph_counts();
    std::cout << fmt::format(
        "{{\"done\": true, \"repeated\": {}, \"device\": \"{}\", \"graphs\": {{\"replays\": {}, "
        "\"captures\": {}, \"eager\": {}, \"evictions\": {}}}}}\n",
        hashes_.size(), engine->info().device_description, graphs.replays, graphs.captures,
        graphs.eager, graphs.evictions);
    return {};
  }

 private:
  struct UnderWay {
    int64_t index;
    std::vector<size_t> members;
    LazyTensor result;
  };

  Status ComputeExpectedRows() {
    ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, Engine::Load(folder_, options_));
    width_ = static_cast<size_t>(engine->info().limits.width);
    pool_ = MakePool(engine->info().limits.vocabulary_rows);
    for (const std::vector<int32_t>& ids : pool_) {
      Batch batch;
      batch.Add(ids, {}, 0, {});
      LazyTensor result = engine->Step(batch);
      ASSIGN_OR_RETURN(const StepResult step, result.Wait());
      Row& row = expected_.emplace_back(width_);
      std::memcpy(row.data(), step.blocks[0].data.data(), width_ * sizeof(float));
    }
    return {};
  }

  template <class Progress>
  Status Steps(Engine& engine, int64_t steps, const Progress& progress) {
    Draw draw;
    Batch batch;
    std::deque<UnderWay> under_way;
    for (int64_t started = 0; started < steps || !under_way.empty();) {
      const bool is_full = static_cast<int32_t>(under_way.size()) == engine.info().steps_under_way;
      if (started < steps && !is_full) {
        std::vector<size_t> members = draw.Next();
        batch.Clear();
        for (const size_t member : members) {
          batch.Add(pool_[member], {}, 0, {});
        }
        under_way.push_back({started, std::move(members), engine.Step(batch)});
        ++started;
        continue;
      }
      RETURN_IF_ERROR(CheckStep(under_way.front()));
      progress(under_way.front().index + 1);
      under_way.pop_front();
    }
    return {};
  }

  Status CheckStep(UnderWay& step) {
    ASSIGN_OR_RETURN(const StepResult result, step.result.Wait());
    const std::span<const std::byte> bytes =
        result.blocks[0].data.first(step.members.size() * width_ * sizeof(float));
    for (size_t i = 0; i < step.members.size(); ++i) {
      Row row(width_);
      std::memcpy(row.data(), bytes.data() + i * width_ * sizeof(float), width_ * sizeof(float));
      const double distance = testing::CosineDistance(row, expected_[step.members[i]]);
      if (result.statuses[i] != RowStatus::kOk || !(distance <= kMaxDistance)) {
        return Internal(fmt::format(
            "a row differs from its sequence's alone: step {}{}, row {} of {}, {} tokens, "
            "1 - cosine {:.3e}",
            step.index, is_repetition_ ? " repeated" : "", i, step.members.size(),
            pool_[step.members[i]].size(), distance));
      }
      worst_ = std::max(worst_, distance);
    }
    return CheckBits(step.index, HashOf(bytes));
  }

  Status CheckBits(int64_t index, uint64_t hash) {
    if (index >= kRepeatedSteps) {
      return {};
    }
    if (!is_repetition_) {
      hashes_.push_back(hash);
      return {};
    }
    return hashes_[static_cast<size_t>(index)] == hash
               ? Status()
               : Internal(
                     fmt::format("a step repeated at the end gives other bits: step {}", index));
  }

  const model::ModelFolder& folder_;
  const EngineOptions& options_;
  size_t width_ = 0;
  std::vector<std::vector<int32_t>> pool_;
  std::vector<Row> expected_;
  std::vector<uint64_t> hashes_;  // of the first steps' rows
  bool is_repetition_ = false;
  double worst_ = 0;
};

Status Main(std::span<char* const> arguments) {
  int64_t steps = 0;
  const std::string_view count = arguments.size() > 1 ? arguments[1] : "";
  if (std::from_chars(count.data(), count.data() + count.size(), steps).ec != std::errc() ||
      steps < 1) {
    return InvalidArgument("usage: engine_soak MODEL STEPS [NAME=VALUE ...]");
  }
  RETURN_IF_ERROR(StartLogging("warning", "text"));
  EngineOptions options;
  options.device = "cpu";
  options.max_step_tokens = kMaxSequences * kMaxLength;
  RETURN_IF_ERROR(bench::ReadEngineArguments(arguments.subspan(2), &options));
  ASSIGN_OR_RETURN(const model::ModelFolder folder, model::ModelFolder::Open(arguments[0]));
  return Soak(folder, options).Run(steps);
}

}  // namespace
}  // namespace bouquet::rose

int main(int argc, char** argv) {
  const bouquet::Status status =
      bouquet::rose::Main(std::span<char* const>(argv + 1, static_cast<size_t>(argc - 1)));
  if (!status.ok()) {
    std::cerr << "engine_soak: " << status.ToString() << '\n';
    return 1;
  }
  return 0;
}
