#include "text/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "base/check.h"
#include "text/byte_level.h"
#include "text/unicode/utf8.h"
#include "text/vocabulary.h"

namespace bouquet::text {
namespace {

constexpr uint64_t kNoKey = std::numeric_limits<uint64_t>::max();

uint64_t KeyOf(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// Up to here looking at all pairs each time beats a heap of them.
constexpr size_t kFewSymbols = 48;
// From here on a list for each rank beats one heap of all merges.
constexpr size_t kLongPiece = 512;
// A longer piece's buffers are given back: one of 10 MB needs 280 MB.
constexpr size_t kMostSymbolsKept = size_t{1} << 20;

/// Heap order: the lowest rank on top, of equal ranks the leftmost.
bool ComesLater(const BpeMerge& a, const BpeMerge& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
}

/// Each symbol knows its neighbours from here on.
void Link(std::vector<BpeSymbol>& symbols) {
  for (size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].previous = static_cast<int32_t>(i) - 1;
    symbols[i].next = i + 1 < symbols.size() ? static_cast<int32_t>(i) + 1 : -1;
  }
}

}  // namespace

Bpe::MergeTable::MergeTable(size_t count) {
  const size_t size = std::bit_ceil(std::max<size_t>(16, 2 * count));
  slots_.assign(size, {kNoKey, {0, 0}});
  shift_ = 64 - std::countr_zero(size);
}

size_t Bpe::MergeTable::First(uint64_t key) const {
  return static_cast<size_t>((key * 0x9E3779B97F4A7C15) >> shift_);
}

void Bpe::MergeTable::Insert(int32_t left, int32_t right, Merge merge) {
  const uint64_t key = KeyOf(left, right);
  size_t i = First(key);
  while (slots_[i].key != kNoKey && slots_[i].key != key) {
    i = (i + 1) & (slots_.size() - 1);
  }
  slots_[i] = {key, merge};
}

const Bpe::MergeTable::Merge* Bpe::MergeTable::Find(int32_t left, int32_t right) const {
  const uint64_t key = KeyOf(left, right);
  for (size_t i = First(key); slots_[i].key != kNoKey; i = (i + 1) & (slots_.size() - 1)) {
    if (slots_[i].key == key) {
      return &slots_[i].merge;
    }
  }
  return nullptr;
}

Bpe::Bpe(const BpeSpec& spec, size_t num_merges)
    : byte_level_(spec.byte_level),
      byte_fallback_(spec.byte_fallback),
      fuse_unknown_(spec.fuse_unknown),
      ignore_merges_(spec.ignore_merges),
      merges_(num_merges) {}

Result<std::unique_ptr<Bpe>> Bpe::Create(const BpeSpec& spec) {
  CHECK(!spec.byte_level || !spec.byte_fallback);
  std::unique_ptr<Bpe> bpe(new Bpe(spec, spec.merges.size()));
  RETURN_IF_ERROR(bpe->AddTokens(spec));
  RETURN_IF_ERROR(bpe->AddMerges(spec));
  return bpe;
}

Status Bpe::AddTokens(const BpeSpec& spec) {
  std::vector<DoubleArrayTrie::Entry> entries;
  entries.reserve(spec.tokens.size());
  std::string bytes;  // of all tokens, one after the other
  if (byte_level_) {
    size_t size = 0;
    for (const auto& [token, id] : spec.tokens) {
      size += token.size();
    }
    bytes.reserve(size);  // never moves: entries point into it
  }
  bool has_empty_token = false;
  for (const auto& [token, id] : spec.tokens) {
    num_ids_ = std::max(num_ids_, id + 1);
    has_empty_token |= token.empty();
    if (!byte_level_) {
      entries.emplace_back(token, id);
      continue;
    }
    const size_t begin = bytes.size();
    if (AppendBytesOfToken(token, bytes)) {
      entries.emplace_back(std::string_view(bytes).substr(begin), id);
    } else {
      other_tokens_.insert_or_assign(std::string(token), id);
    }
  }
  trie_ = DoubleArrayTrie::Build(entries);
  num_tokens_ = trie_.num_keys() + other_tokens_.size() + (has_empty_token ? 1 : 0);
  whole_ = std::make_unique<std::atomic<Whole>[]>(static_cast<size_t>(num_ids_));
  std::vector<bool> is_taken(static_cast<size_t>(num_ids_));
  for (const auto& [token, id] : spec.tokens) {
    has_shared_ids_ |= is_taken[static_cast<size_t>(id)];
    is_taken[static_cast<size_t>(id)] = true;
  }
  for (uint32_t byte = 0; byte < 256; ++byte) {
    byte_ids_[byte] = byte_fallback_ ? Id(fmt::format("<0x{:02X}>", byte))
                      : byte_level_  ? Id(TokenOfByte(static_cast<uint8_t>(byte)))
                                     : kNone;
  }
  if (!spec.unknown_token.empty()) {
    unknown_id_ = Id(spec.unknown_token);
    if (unknown_id_ == kNone) {
      return InvalidArgument(
          fmt::format("\"unk_token\" is not in the vocabulary: \"{}\"", spec.unknown_token),
          "unk_token");
    }
  }
  return {};
}

Status Bpe::AddMerges(const BpeSpec& spec) {
  std::string both;
  starts_word_.assign(static_cast<size_t>(num_ids_), true);
  for (size_t rank = 0; rank < spec.merges.size(); ++rank) {
    const auto& [left, right] = spec.merges[rank];
    both.assign(left).append(right);
    const int32_t left_id = Id(left);
    const int32_t right_id = Id(right);
    const int32_t id = Id(both);
    if (left_id == kNone || right_id == kNone || id == kNone) {
      return InvalidArgument(fmt::format("\"merges\"[{}]: not in the vocabulary: \"{}\"", rank,
                                         left_id == kNone    ? left
                                         : right_id == kNone ? right
                                                             : std::string_view(both)),
                             "merges");
    }
    merges_.Insert(left_id, right_id, {static_cast<uint32_t>(rank), id});
    ids_by_rank_.push_back(id);
    if (!byte_level_) {
      MarkInnerCharacters(both);
    }
  }
  for (const auto& [token, id] : spec.tokens) {
    const bool is_character = !token.empty() && token.size() == unicode::Decode(token).num_bytes;
    if (!byte_level_ && is_character && starts_word_[static_cast<size_t>(id)]) {
      may_start_word_[static_cast<unsigned char>(token[0])] = true;
    }
  }
  return {};
}

/// The characters of a merged token that follow another one do not start words.
void Bpe::MarkInnerCharacters(std::string_view token) {
  std::string_view previous;
  while (!token.empty()) {
    const std::string_view character = token.substr(0, unicode::Decode(token).num_bytes);
    if (!previous.empty() && character != previous) {
      if (const int32_t id = Id(character); id != kNone) {
        starts_word_[static_cast<size_t>(id)] = false;
      }
    }
    previous = character;
    token.remove_prefix(character.size());
  }
}

int32_t Bpe::Id(std::string_view token) const {
  std::string bytes;
  if (byte_level_) {
    if (!AppendBytesOfToken(token, bytes)) {
      const auto found = other_tokens_.find(std::string(token));
      return found == other_tokens_.end() ? kNone : found->second;
    }
    token = bytes;
  }
  return trie_.Find(token);
}

void Bpe::Encode(std::string_view piece, EncodeScratch& scratch, std::vector<int32_t>& ids,
                 std::vector<ByteSpan>* spans) const {
  if (ignore_merges_) {
    if (const int32_t id = trie_.Find(piece); id != kNone) {
      ids.push_back(id);
      if (spans != nullptr) {
        spans->push_back({0, static_cast<uint32_t>(piece.size())});
      }
      return;
    }
  }
  uint32_t position = 0;
  while (!piece.empty()) {
    const bool is_cut = !byte_level_ && !has_shared_ids_;
    const std::string_view part = piece.substr(0, is_cut ? FirstCut(piece) : piece.size());
    position = EncodePart(part, position, scratch, ids, spans);
    piece.remove_prefix(part.size());
  }
}

/// The first place behind which a word begins, or the end: see starts_word_.
size_t Bpe::FirstCut(std::string_view piece) const {
  for (size_t i = unicode::Decode(piece).num_bytes; i < piece.size(); ++i) {
    if (!may_start_word_[static_cast<unsigned char>(piece[i])]) {
      continue;
    }
    const std::string_view before = piece.substr(0, i);
    const std::string_view previous = before.substr(unicode::LastCodePointStart(before));
    const std::string_view rest = piece.substr(i);
    const std::string_view next = rest.substr(0, unicode::Decode(rest).num_bytes);
    const int32_t id = Id(next);
    if (id != kNone && starts_word_[static_cast<size_t>(id)] && previous != next &&
        Id(previous) != kNone) {
      return i;
    }
  }
  return piece.size();
}

/// Encodes a part that no merge reaches out of. Its tokens stand for bytes from `position` on;
/// returns where the next part's begin.
uint32_t Bpe::EncodePart(std::string_view part, uint32_t position, EncodeScratch& scratch,
                         std::vector<int32_t>& ids, std::vector<ByteSpan>* spans) const {
  // Most parts of a text are tokens, and come out of the merges as such.
  const int32_t whole_id = trie_.Find(part);
  std::atomic<Whole>* whole =
      whole_id == kNone || has_shared_ids_ ? nullptr : &whole_[static_cast<size_t>(whole_id)];
  if (whole != nullptr && whole->load(std::memory_order_relaxed) == Whole::kOne) {
    ids.push_back(whole_id);
    const auto end = position + static_cast<uint32_t>(part.size());
    if (spans != nullptr) {
      spans->push_back({position, end});
    }
    return end;
  }
  Begin(part, scratch.symbols);
  Merge(scratch);
  const size_t size_before = ids.size();
  for (int32_t i = 0; i >= 0 && !scratch.symbols.empty();
       i = scratch.symbols[static_cast<size_t>(i)].next) {
    ids.push_back(scratch.symbols[static_cast<size_t>(i)].id);
  }
  if (spans != nullptr) {
    position = AppendSpans(part, position, scratch.symbols, *spans);
  }
  if (whole != nullptr) {
    const bool is_one = ids.size() == size_before + 1 && ids.back() == whole_id;
    whole->store(is_one ? Whole::kOne : Whole::kParts, std::memory_order_relaxed);
  }
  if (scratch.symbols.size() > kMostSymbolsKept) {
    scratch.symbols = {};
    scratch.bpe_queue.Release();
  }
  return position;
}

/// A token stands for as many bytes as its symbols, counted from `position` on. Returns the end.
uint32_t Bpe::AppendSpans(std::string_view piece, uint32_t position,
                          const std::vector<BpeSymbol>& symbols,
                          std::vector<ByteSpan>& spans) const {
  const size_t size_before = spans.size();
  uint32_t end = position;
  for (int32_t i = 0; i >= 0 && !symbols.empty(); i = symbols[static_cast<size_t>(i)].next) {
    const uint32_t begin = end;
    end += symbols[static_cast<size_t>(i)].num_bytes;
    spans.push_back({begin, end});
  }
  if (byte_level_ && end < piece.size()) {
    MoveOverDroppedBytes(piece, std::span(spans).subspan(size_before));
  }
  return end;
}

/// Where bytes are dropped, since the vocabulary lacks them, the spans behind lag: the reference
/// counts the kept bytes only. It does so in the spelling of byte_level.h, one or two bytes each.
void Bpe::MoveOverDroppedBytes(std::string_view piece, std::span<ByteSpan> spans) const {
  const auto spelled_bytes = [](char byte) {
    return TokenOfByte(static_cast<uint8_t>(byte)).size();
  };
  size_t kept = 0;       // the next byte that may stand in a token
  size_t kept_to = 0;    // spelled bytes of kept ones before it
  size_t place = 0;      // the byte of the piece at which kept_to lies
  size_t place_end = 0;  // spelled bytes of the piece up to and with it
  const auto advance = [&] {
    while (place_end <= kept_to && place < piece.size()) {
      place_end += spelled_bytes(piece[place]);
      place += place_end <= kept_to ? 1 : 0;
    }
    return static_cast<uint32_t>(place);
  };
  for (ByteSpan& span : spans) {
    const uint32_t num_bytes = span.end - span.begin;
    span.begin = advance();
    for (uint32_t i = 0; i < num_bytes; ++kept) {
      if (byte_ids_[static_cast<unsigned char>(piece[kept])] != kNone) {
        kept_to += spelled_bytes(piece[kept]);
        ++i;
      }
    }
    --kept_to;  // its last byte
    span.end = advance() + 1;
    ++kept_to;
  }
}

void Bpe::Begin(std::string_view piece, std::vector<BpeSymbol>& symbols) const {
  symbols.clear();
  BpeSymbol unknown{kNone, 0, 0, 0};
  while (!piece.empty()) {
    const size_t num_bytes = byte_level_ ? 1 : unicode::Decode(piece).num_bytes;
    BeginAtCharacter(piece.substr(0, num_bytes), symbols, unknown);
    piece.remove_prefix(num_bytes);
  }
  if (unknown.id != kNone) {
    symbols.push_back(unknown);
  }
  Link(symbols);
}

/// `unknown` is an unknown token that has not been put down yet, since more may join it. The
/// reference lets byte fallback overtake it; so do we.
void Bpe::BeginAtCharacter(std::string_view character, std::vector<BpeSymbol>& symbols,
                           BpeSymbol& unknown) const {
  const auto put = [&symbols](int32_t id, size_t num_bytes) {
    symbols.push_back({id, 0, 0, static_cast<uint32_t>(num_bytes)});
  };
  int32_t id = kNone;
  if (byte_level_) {
    id = byte_ids_[static_cast<unsigned char>(character[0])];
  } else {
    id = trie_.Find(character);
  }
  if (id != kNone) {
    if (unknown.id != kNone) {
      symbols.push_back(unknown);
      unknown = {kNone, 0, 0, 0};
    }
    put(id, character.size());
    return;
  }
  const auto has_byte = [this](char byte) {
    return byte_ids_[static_cast<unsigned char>(byte)] != kNone;
  };
  if (byte_fallback_ && std::ranges::all_of(character, has_byte)) {
    for (const char byte : character) {
      put(byte_ids_[static_cast<unsigned char>(byte)], 1);
    }
    return;
  }
  if (unknown_id_ == kNone) {
    return;
  }
  if (unknown.id != kNone && !fuse_unknown_) {
    symbols.push_back(unknown);
    unknown.num_bytes = 0;
  }
  unknown.id = unknown_id_;
  unknown.num_bytes += static_cast<uint32_t>(character.size());
}

void Bpe::QueueMerge(const std::vector<BpeSymbol>& symbols, int32_t left, int32_t right,
                     std::vector<BpeMerge>& queue) const {
  if (left < 0 || right < 0) {
    return;
  }
  const MergeTable::Merge* merge =
      merges_.Find(symbols[static_cast<size_t>(left)].id, symbols[static_cast<size_t>(right)].id);
  if (merge != nullptr) {
    queue.push_back({merge->rank, left, merge->id});
  }
}

void Bpe::Merge(EncodeScratch& scratch) const {
  if (scratch.symbols.size() >= kLongPiece) {
    MergeLong(scratch.symbols, scratch.bpe_queue);
  } else if (scratch.symbols.size() <= kFewSymbols && !has_shared_ids_) {
    MergeFew(scratch.symbols);
  } else {
    MergeShort(scratch);
  }
}

void Bpe::MergeFew(std::vector<BpeSymbol>& symbols) const {
  size_t count = symbols.size();
  // Of each symbol and the next: the rank of their merge, and what it makes.
  std::array<uint32_t, kFewSymbols> ranks;
  std::array<int32_t, kFewSymbols> made;
  const auto look_up = [&](size_t i) {
    const MergeTable::Merge* merge = merges_.Find(symbols[i].id, symbols[i + 1].id);
    ranks[i] = merge == nullptr ? kNoRank : merge->rank;
    made[i] = merge == nullptr ? kNone : merge->id;
  };
  for (size_t i = 0; i + 1 < count; ++i) {
    look_up(i);
  }
  while (count > 1) {
    const auto end = static_cast<ptrdiff_t>(count) - 1;  // of the pairs
    const ptrdiff_t at = std::min_element(ranks.begin(), ranks.begin() + end) - ranks.begin();
    const auto left = static_cast<size_t>(at);
    if (ranks[left] == kNoRank) {
      break;
    }
    symbols[left].id = made[left];
    symbols[left].num_bytes += symbols[left + 1].num_bytes;
    symbols.erase(symbols.begin() + at + 1);
    if (at + 1 < end) {
      std::copy(ranks.begin() + at + 2, ranks.begin() + end, ranks.begin() + at + 1);
      std::copy(made.begin() + at + 2, made.begin() + end, made.begin() + at + 1);
    }
    --count;
    if (left + 1 < count) {
      look_up(left);
    }
    if (left > 0) {
      look_up(left - 1);
    }
  }
  Link(symbols);
}

void Bpe::MergeShort(EncodeScratch& scratch) const {
  std::vector<BpeSymbol>& symbols = scratch.symbols;
  std::vector<BpeMerge>& queue = scratch.merges;
  queue.clear();
  for (size_t i = 1; i < symbols.size(); ++i) {
    QueueMerge(symbols, static_cast<int32_t>(i) - 1, static_cast<int32_t>(i), queue);
  }
  std::ranges::make_heap(queue, ComesLater);
  const auto push = [&](int32_t left, int32_t right) {
    const size_t size_before = queue.size();
    QueueMerge(symbols, left, right, queue);
    if (queue.size() > size_before) {
      std::ranges::push_heap(queue, ComesLater);
    }
  };
  while (!queue.empty()) {
    const BpeMerge top = queue.front();
    std::ranges::pop_heap(queue, ComesLater);
    queue.pop_back();
    if (MakeMerge(symbols, top.left, top.id)) {
      push(symbols[static_cast<size_t>(top.left)].previous, top.left);
      push(top.left, symbols[static_cast<size_t>(top.left)].next);
    }
  }
}

void Bpe::MergeLong(std::vector<BpeSymbol>& symbols, BpeQueue& queue) const {
  const auto push = [&](int32_t left, int32_t right) {
    if (left < 0 || right < 0) {
      return;
    }
    const MergeTable::Merge* merge =
        merges_.Find(symbols[static_cast<size_t>(left)].id, symbols[static_cast<size_t>(right)].id);
    if (merge != nullptr) {
      queue.Push({merge->rank, left});
    }
  };
  queue.Begin(ids_by_rank_.size());
  for (size_t i = 1; i < symbols.size(); ++i) {
    push(static_cast<int32_t>(i) - 1, static_cast<int32_t>(i));
  }
  while (const std::optional<RankedMerge> top = queue.Pop()) {
    if (MakeMerge(symbols, top->left, ids_by_rank_[top->rank])) {
      push(symbols[static_cast<size_t>(top->left)].previous, top->left);
      push(top->left, symbols[static_cast<size_t>(top->left)].next);
    }
  }
}

/// False when the neighbours have changed since the merge was queued. What counts is, as in the
/// reference, that they still make the same token, be it by another pair.
bool Bpe::MakeMerge(std::vector<BpeSymbol>& symbols, int32_t at, int32_t id) const {
  BpeSymbol& left = symbols[static_cast<size_t>(at)];
  if (left.num_bytes == 0 || left.next == kNone) {
    return false;
  }
  BpeSymbol& right = symbols[static_cast<size_t>(left.next)];
  const MergeTable::Merge* now = merges_.Find(left.id, right.id);
  if (now == nullptr || now->id != id) {
    return false;
  }
  left.id = id;
  left.next = right.next;
  left.num_bytes += right.num_bytes;
  right.num_bytes = 0;
  if (left.next != kNone) {
    symbols[static_cast<size_t>(left.next)].previous = at;
  }
  return true;
}

}  // namespace bouquet::text
