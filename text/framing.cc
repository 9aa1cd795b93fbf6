#include "text/framing.h"

#include <algorithm>
#include <span>

namespace bouquet::text {
namespace {

using Part = SequenceTemplate::Part;

/// A sequence as it grows. Types are left out as long as all are 0.
class Assembler {
 public:
  Assembler(bool with_spans, size_t num_tokens) : with_spans_(with_spans), num_tokens_(num_tokens) {
    sequence_.ids.reserve(num_tokens);
    if (with_spans) {
      sequence_.spans.reserve(num_tokens);
      sequence_.special_mask.reserve(num_tokens);
    }
  }

  void AddSpecial(const std::vector<int32_t>& ids, uint8_t type_id) {
    AddIds(ids, type_id);
    if (with_spans_) {
      sequence_.spans.resize(sequence_.ids.size());
      sequence_.special_mask.resize(sequence_.ids.size(), 1);
    }
  }

  void AddText(const KeptTokens& kept, uint8_t type_id) {
    AddTokens(kept, 0, kept.num_head, type_id);
    AddTokens(kept, kept.begin, kept.end, type_id);
  }

  TokenSequence Take() { return std::move(sequence_); }

 private:
  void AddTokens(const KeptTokens& kept, size_t begin, size_t end, uint8_t type_id) {
    AddIds(std::span(*kept.ids).subspan(begin, end - begin), type_id);
    if (with_spans_) {
      const auto spans = std::span(kept.spans->spans).subspan(begin, end - begin);
      sequence_.spans.insert(sequence_.spans.end(), spans.begin(), spans.end());
      sequence_.special_mask.resize(sequence_.ids.size(), 0);
    }
  }

  void AddIds(std::span<const int32_t> ids, uint8_t type_id) {
    if (ids.empty()) {
      return;
    }
    if (type_id != 0 && sequence_.type_ids.empty()) {
      sequence_.type_ids.reserve(num_tokens_);
      sequence_.type_ids.resize(sequence_.ids.size(), 0);
    }
    const bool has_types = type_id != 0 || !sequence_.type_ids.empty();
    sequence_.ids.insert(sequence_.ids.end(), ids.begin(), ids.end());
    if (has_types) {
      sequence_.type_ids.resize(sequence_.ids.size(), type_id);
    }
  }

  bool with_spans_;
  size_t num_tokens_;
  TokenSequence sequence_;
};

}  // namespace

void Cut(KeptTokens& kept, size_t num_prompt, size_t room, TruncationSide side) {
  const size_t num_tokens = kept.ids->size();
  if (num_tokens <= room) {
    return;
  }
  if (side == TruncationSide::kRight) {
    kept.end = room;
    return;
  }
  kept.num_head = std::min(num_prompt, room);
  kept.begin = num_tokens - (room - kept.num_head);
}

void TrimSpans(const std::vector<SpanTrimming>& trimmings, bool add_special_tokens,
               const Tokenizer& tokenizer, KeptTokens& kept) {
  if (kept.spans == nullptr || trimmings.empty()) {
    return;
  }
  const auto is_first = [&](size_t i) { return i == (kept.num_head > 0 ? 0 : kept.begin); };
  const auto trim = [&](size_t i, SurroundingSpaces spaces) {
    for (const SpanTrimming& trimming : trimmings) {
      ByteSpan& span = kept.spans->spans[i];
      const bool counts_as_first =
          is_first(i) && !(add_special_tokens && trimming.behind_special_tokens);
      const bool is_prefix = trimming.has_prefix_space && spaces.num_leading == 1 &&
                             (counts_as_first || span.begin == 0);
      span = WithoutCharacters(kept.text, span, is_prefix ? 0 : spaces.num_leading,
                               spaces.num_trailing);
    }
  };
  auto added = kept.spans->added.begin();
  for (size_t i = 0; i < kept.ids->size(); ++i) {
    const bool is_added = added != kept.spans->added.end() && added->index == i;
    if (i < kept.num_head || (i >= kept.begin && i < kept.end)) {
      trim(i, is_added ? added->spaces : CountSpacesAround(tokenizer.Piece((*kept.ids)[i])));
    }
    added += is_added ? 1 : 0;
  }
}

TokenSequence Assemble(const SequenceTemplate& frame, bool add_special_tokens,
                       const KeptTokens& first, const KeptTokens* second, size_t num_tokens) {
  Assembler assembler(first.spans != nullptr, num_tokens);
  for (const Part& part : frame.parts) {
    switch (part.kind) {
      case Part::Kind::kSpecial:
        if (add_special_tokens) {
          assembler.AddSpecial(part.ids, part.type_id);
        }
        break;
      case Part::Kind::kFirst:
        assembler.AddText(first, add_special_tokens ? part.type_id : frame.bare_first_type);
        break;
      case Part::Kind::kSecond:
        assembler.AddText(*second, add_special_tokens ? part.type_id : frame.bare_second_type);
        break;
    }
  }
  return assembler.Take();
}

}  // namespace bouquet::text
