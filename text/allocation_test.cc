// Encoding does not allocate in the steady state: counts every operator new of this thread.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "testing/test_data.h"
#include "text/encode_scratch.h"
#include "text/small_charsmap.h"
#include "text/small_tokenizer.h"
#include "text/text_pipeline.h"
#include "text/tokenizer_file.h"

namespace {
thread_local size_t num_allocations = 0;

void* CountedAllocation(size_t size) {
  ++num_allocations;
  return std::malloc(size == 0 ? 1 : size);
}
}  // namespace

// g++ 12 takes the inlined malloc and free below for a mismatch of new and delete.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

// All forms without alignment; the address sanitizer wants new and delete from one place.
void* operator new(size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return CountedAllocation(size);
}
void* operator new[](size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return CountedAllocation(size);
}
void* operator new(size_t size) {
  if (void* memory = CountedAllocation(size)) {
    return memory;
  }
  throw std::bad_alloc();
}
void* operator new[](size_t size) { return operator new(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t /*size*/) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t /*size*/) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t& /*tag*/) noexcept { std::free(memory); }

namespace bouquet::text {
namespace {

const std::string& Texts() {
  static const std::string texts =
      "Bad cabbage, jade [SEP] face! 中国 é e\u0301\u0327 \U0001d165\u302e \u0130 각 [MASK] \t "
      "a\x01b";
  return texts;
}

void ExpectNoAllocation(std::string_view json) {
  const TokenizerFile file = ParseTokenizerJson(json, "t", false).value();
  EncodeScratch scratch;
  std::vector<int32_t> ids;
  std::string text = Texts();
  for (int doubling = 0; doubling < 6; ++doubling) {
    text += text;
  }
  ASSERT_TRUE(file.tokenizer->Encode(text, {.parse_special = false}, scratch, ids)
                  .ok());  // gives the most ids
  ASSERT_GT(ids.size(), 1000U);
  ASSERT_TRUE(file.tokenizer->Encode(Texts(), {}, scratch, ids)
                  .ok());  // BPE has other buffers for short pieces
  const size_t before = num_allocations;
  for (int i = 0; i < 1000; ++i) {
    ids.clear();
    const std::string_view some_text = i % 2 == 0 ? std::string_view(text) : Texts();
    ASSERT_TRUE(
        file.tokenizer->Encode(some_text, {.parse_special = i % 3 == 0}, scratch, ids).ok());
  }
  EXPECT_EQ(num_allocations - before, 0U);
}

TEST(AllocationTest, WordPieceDoesNotAllocateOnceItsScratchHasGrown) {
  ExpectNoAllocation(kSmallTokenizerJson);
}

TEST(AllocationTest, BpeDoesNotAllocateOnceItsScratchHasGrown) {
  ExpectNoAllocation(kSmallBpeJson);
  ExpectNoAllocation(
      SmallBpeWith(R"("add_prefix_space": false, "trim_offsets": false, "use_regex": false)",
                   R"("add_prefix_space": true, "trim_offsets": false, "use_regex": true)"));
}

TEST(AllocationTest, UnigramDoesNotAllocateOnceItsScratchHasGrown) {
  const std::string charsmap = "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"" +
                               Base64(SmallCharsmapBlob()) + "\"}";
  ExpectNoAllocation(SmallUnigramWith("{\"type\": \"NFKC\"}", charsmap));
  ExpectNoAllocation(
      SmallUnigramWith("\"always\", \"split\": true", "\"first\", \"split\": false"));
}

TEST(AllocationTest, BpeOnCharactersDoesNotAllocateOnceItsScratchHasGrown) {
  ExpectNoAllocation(kSmallLlamaJson);
}

TEST(AllocationTest, AnExpressionOfTheFileDoesNotAllocateOnceItsScratchHasGrown) {
  ExpectNoAllocation(SmallTokenizerWith(
      R"({"type": "BertPreTokenizer"})",
      R"({"type": "Split", "pattern": {"Regex": "\\w+|\\p{P}"}, "behavior": "Isolated", "invert": false})"));
}

TEST(AllocationTest, PipelineAllocatesNothingButItsResult) {
  const testing::TemporaryFolder folder;
  WriteFile(folder.path() / "tokenizer.json", kSmallTokenizerJson);
  const auto pipeline = TextPipeline::Load(folder.path(), false).value();
  EncodeScratch scratch;
  const PipelineOptions options = {
      .length = {.over_length = OverLength::kTruncate, .max_tokens = 16},
      .prompt = "cab: ",
      .exclude_prompt_from_pooling = true};
  const auto encode_both = [&] {
    return pipeline->Encode(Texts(), options, scratch).ok() &&
           pipeline->EncodePair(Texts(), Texts(), options, scratch).ok();
  };
  ASSERT_TRUE(encode_both());
  const size_t before = num_allocations;
  ASSERT_TRUE(encode_both());
  EXPECT_EQ(num_allocations - before, 3U);  // ids; ids and types of the pair
}

}  // namespace
}  // namespace bouquet::text
