#pragma once

#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "testing/test_data.h"
#include "testing/tiny_vocabulary.h"
#include "text/text_pipeline.h"

namespace bouquet::testing {

/// The tokenizer of the tiny vocabulary, loaded from a folder of its own. A failure to load fails
/// the test.
class TinyTokenizer {
 public:
  TinyTokenizer() {
    WriteTinyVocabulary(folder_.path());
    auto pipeline = text::TextPipeline::Load(folder_.path(), false);
    if (pipeline.ok()) {
      pipeline_ = std::move(pipeline).value();
    } else {
      ADD_FAILURE() << pipeline.status().ToString();
    }
  }

  const std::shared_ptr<const text::TextPipeline>& pipeline() const { return pipeline_; }

 private:
  TemporaryFolder folder_;
  std::shared_ptr<const text::TextPipeline> pipeline_;
};

}  // namespace bouquet::testing
