#include "text/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "text/unicode/utf8.h"

namespace bouquet::text {
namespace {

/// Hands the best way through a stretch of text to `output.Add`, token by token; steps[i] ends at
/// byte `begin` + i. Uses the steps up.
template <class Output>
void HandOut(std::vector<UnigramStep>& steps, size_t begin, Output& output) {
  // The steps point back. Turned round, each says how long the token is that starts there.
  uint32_t next_bytes = 0;
  for (size_t at = steps.size() - 1;; at -= next_bytes) {
    std::swap(next_bytes, steps[at].num_bytes);
    if (at == 0) {
      break;
    }
  }
  for (size_t at = 0; steps[at].num_bytes != 0;) {
    const size_t end = at + steps[at].num_bytes;
    output.Add(steps[end].id, begin + at, begin + end);
    at = end;
  }
}

}  // namespace

/// Takes the tokens of the best path from left to right; holds unknown ones back until the run of
/// them is over.
class Unigram::Output {
 public:
  Output(const Unigram& model, std::string_view piece, std::vector<int32_t>& ids,
         std::vector<ByteSpan>* spans)
      : model_(model), piece_(piece), ids_(ids), spans_(spans) {}

  void Add(int32_t id, size_t begin, size_t end) {
    if (id == model_.unknown_id_) {
      unknown_begin_ = unknown_end_ > 0 ? unknown_begin_ : begin;
      unknown_end_ = end;
      return;
    }
    Flush();
    Put(id, begin, end);
  }

  void Flush() {
    if (unknown_end_ == 0) {
      return;
    }
    const std::string_view run = piece_.substr(unknown_begin_, unknown_end_ - unknown_begin_);
    const auto byte_id = [this](char c) { return model_.byte_ids_[static_cast<unsigned char>(c)]; };
    // Characters that are unknown one by one may be a token together.
    const int32_t whole_id = model_.Id(run);
    if (whole_id == kNone && model_.byte_fallback_ &&
        std::ranges::none_of(run, [&](char c) { return byte_id(c) == kNone; })) {
      for (const char c : run) {
        Put(byte_id(c), unknown_begin_, unknown_end_);
      }
    } else {
      Put(whole_id == kNone ? model_.unknown_id_ : whole_id, unknown_begin_, unknown_end_);
    }
    unknown_end_ = 0;
  }

 private:
  void Put(int32_t id, size_t begin, size_t end) {
    ids_.push_back(id);
    if (spans_ != nullptr) {
      spans_->push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
    }
  }

  const Unigram& model_;
  std::string_view piece_;
  std::vector<int32_t>& ids_;
  std::vector<ByteSpan>* spans_;
  size_t unknown_begin_ = 0;
  size_t unknown_end_ = 0;  // 0: no run
};

Unigram::Unigram(const UnigramSpec& spec)
    : trie_(DoubleArrayTrie::Build(spec.tokens)),
      scores_(spec.scores),
      unknown_id_(spec.unknown_id),
      unknown_score_(*std::ranges::min_element(spec.scores) - 10.0),
      byte_fallback_(spec.byte_fallback),
      whole_(std::make_unique<std::atomic<Whole>[]>(spec.scores.size())) {
  for (uint32_t byte = 0; byte < 256; ++byte) {
    byte_ids_[byte] = byte_fallback_ ? Id(fmt::format("<0x{:02X}>", byte)) : kNone;
  }
}

Result<std::unique_ptr<Unigram>> Unigram::Create(const UnigramSpec& spec) {
  CHECK_EQ(spec.tokens.size(), spec.scores.size());
  if (spec.unknown_id < 0 || static_cast<size_t>(spec.unknown_id) >= spec.tokens.size()) {
    return InvalidArgument(fmt::format("\"unk_id\" is not in the vocabulary: {} of {} tokens",
                                       spec.unknown_id, spec.tokens.size()),
                           "unk_id");
  }
  return std::unique_ptr<Unigram>(new Unigram(spec));
}

int32_t Unigram::Id(std::string_view token) const { return trie_.Find(token); }

void Unigram::Encode(std::string_view piece, EncodeScratch& scratch, std::vector<int32_t>& ids,
                     std::vector<ByteSpan>* spans) const {
  const int32_t whole_id = Id(piece);
  std::atomic<Whole>* whole = whole_id == kNone ? nullptr : &whole_[static_cast<size_t>(whole_id)];
  Output output(*this, piece, ids, spans);
  if (whole != nullptr && whole->load(std::memory_order_relaxed) == Whole::kOne) {
    output.Add(whole_id, 0, piece.size());
    output.Flush();
    return;
  }
  const size_t size_before = ids.size();
  Search(piece, scratch, output);
  output.Flush();
  if (whole != nullptr) {
    const bool is_one = ids.size() == size_before + 1 && ids.back() == whole_id;
    whole->store(is_one ? Whole::kOne : Whole::kParts, std::memory_order_relaxed);
  }
}

/// Goes through the piece character by character with the best way to each end of a token. Where no
/// token reaches over a place, what lies before it is settled and handed out, so that the buffer is
/// as long as the longest stretch without such a place.
void Unigram::Search(std::string_view piece, EncodeScratch& scratch, Output& output) const {
  std::vector<UnigramStep>& steps = scratch.unigram_steps;
  steps.clear();
  steps.push_back({0.0, 0, kNone});
  size_t settled = 0;  // steps[i] is the best last token of the ways to settled + i
  size_t begin = 0;
  while (begin < piece.size()) {
    if (settled + steps.size() == begin + 1 && begin > settled) {
      const UnigramStep last = steps.back();
      HandOut(steps, settled, output);
      steps.clear();
      steps.push_back(last);
      settled = begin;
    }
    const double score_here = steps[begin - settled].score;
    const size_t character_bytes = unicode::Decode(piece.substr(begin)).num_bytes;
    const auto offer = [&](size_t end, double score, int32_t id) {
      while (settled + steps.size() <= end) {
        steps.emplace_back();
      }
      UnigramStep& step = steps[end - settled];
      if (step.num_bytes == 0 || score > step.score) {
        step = {score, static_cast<uint32_t>(end - begin), id};
      }
    };
    bool has_character = false;
    DoubleArrayTrie::Node node = DoubleArrayTrie::kRoot;
    for (size_t end = begin; end < piece.size();) {
      node = trie_.Step(node, static_cast<unsigned char>(piece[end++]));
      if (node == DoubleArrayTrie::kDead) {
        break;
      }
      if (const int32_t id = trie_.Value(node); id != DoubleArrayTrie::kNoValue) {
        offer(end, score_here + scores_[static_cast<size_t>(id)], id);
        has_character |= end - begin == character_bytes;
      }
    }
    if (!has_character) {
      offer(begin + character_bytes, score_here + unknown_score_, unknown_id_);
    }
    begin += character_bytes;
  }
  HandOut(steps, settled, output);
}

}  // namespace bouquet::text
