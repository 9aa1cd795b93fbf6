#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "rose/engine.h"
#include "testing/cosine_distance.h"
#include "testing/test_data.h"

namespace bouquet::testing {

/// Token ids and the reference library's vector for them (tests/parity/make_goldens.py).
struct GoldenCase {
  std::vector<int32_t> ids;
  std::vector<uint8_t> type_ids;
  int32_t pooling_start = 0;
  std::vector<float> vector;
};

inline std::vector<GoldenCase> ReadGoldens(const std::string& name) {
  const Result<JsonDocument> document =
      JsonDocument::ParseFile(SourcePath("tests/parity/goldens/" + name + ".json"));
  CHECK(document.ok());
  std::vector<GoldenCase> cases;
  for (const simdjson::dom::element item : document->root()["cases"]) {
    GoldenCase golden;
    for (const simdjson::dom::element id : item["ids"]) {
      golden.ids.push_back(static_cast<int32_t>(id.get_int64().value()));
    }
    simdjson::dom::array types;
    if (item["type_ids"].get_array().get(types) == simdjson::SUCCESS) {
      for (const simdjson::dom::element type : types) {
        golden.type_ids.push_back(static_cast<uint8_t>(type.get_int64().value()));
      }
    }
    int64_t pooling_start = 0;
    if (item["pooling_start"].get_int64().get(pooling_start) == simdjson::SUCCESS) {
      golden.pooling_start = static_cast<int32_t>(pooling_start);
    }
    for (const simdjson::dom::element value : item["vector"]) {
      golden.vector.push_back(static_cast<float>(value.get_double().value()));
    }
    cases.push_back(std::move(golden));
  }
  return cases;
}

/// Runs the cases as one step and gives their rows, full width.
inline std::vector<std::vector<float>> RunStep(rose::Engine& engine,
                                               const std::vector<const GoldenCase*>& cases,
                                               const model::OutputSpec& output) {
  rose::Batch batch;
  for (const GoldenCase* golden : cases) {
    batch.Add(golden->ids, golden->type_ids, golden->pooling_start, output);
  }
  rose::LazyTensor step = engine.Step(batch);
  const Result<rose::StepResult> result = step.Wait();
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  std::vector<std::vector<float>> rows;
  if (!result.ok()) {
    return rows;
  }
  const model::RowBlock& block = result->blocks[0];
  const auto* data = reinterpret_cast<const float*>(block.data.data());
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(result->statuses[i], rose::RowStatus::kOk);
    const float* row = data + block.offsets[i] * block.width;
    rows.emplace_back(row, row + block.width);
  }
  return rows;
}

inline std::unique_ptr<rose::Engine> LoadEngine(const std::filesystem::path& folder,
                                                const rose::EngineOptions& options) {
  const Result<model::ModelFolder> opened = model::ModelFolder::Open(folder);
  EXPECT_TRUE(opened.ok()) << opened.status().ToString();
  Result<std::unique_ptr<rose::Engine>> engine = rose::Engine::Load(*opened, options);
  EXPECT_TRUE(engine.ok()) << engine.status().ToString();
  return std::move(engine).value();
}

}  // namespace bouquet::testing
