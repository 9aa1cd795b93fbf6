#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "text/added_tokens.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/token_model.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace bouquet::text {

/// Added tokens, normalizer, pre-tokenizer and a model put together. Immutable. Thread: any.
class StagedTokenizer final : public Tokenizer {
 public:
  /// `tokens` is the vocabulary that `model` was made of; `added` as the file states them, in its
  /// order. Their ids follow the reference: that of the model's vocabulary, else the next free one;
  /// a file that states another is warned about. A decoder
  /// that is not served fails Decode, not this. Error: kUnimplemented for a normalized token that
  /// normalizes to nothing; kInvalidArgument when ids run out.
  static Result<std::unique_ptr<StagedTokenizer>> Create(std::unique_ptr<TokenModel> model,
                                                         const TokenList& tokens,
                                                         Normalizer normalizer,
                                                         PreTokenizer pre_tokenizer,
                                                         const std::vector<AddedToken>& added,
                                                         Result<Decoder> decoder = Decoder());

  Status Encode(std::string_view text, const EncodeOptions& options, EncodeScratch& scratch,
                std::vector<int32_t>& ids) const override;
  Status EncodeWithSpans(std::string_view text, const EncodeOptions& options,
                         EncodeScratch& scratch, std::vector<int32_t>& ids,
                         TokenSpans& spans) const override;
  Result<std::string> Decode(std::span<const int32_t> ids,
                             const DecodeOptions& options) const override;
  std::string_view Piece(int32_t id) const override { return vocabulary_.Piece(id); }
  int32_t vocabulary_size() const override { return vocabulary_.size(); }

 private:
  StagedTokenizer(std::unique_ptr<TokenModel> model, const TokenList& tokens, Normalizer normalizer,
                  PreTokenizer pre_tokenizer);
  Result<std::vector<AddedToken>> SettleIds(const std::vector<AddedToken>& added) const;
  void EncodePiece(std::string_view piece, std::span<const ByteSpan> origins,
                   EncodeScratch& scratch, std::vector<int32_t>& ids, TokenSpans& spans) const;
  void EncodeBeginning(std::string_view raw, const EncodeOptions& options, EncodeScratch& scratch,
                       std::vector<int32_t>& ids) const;
  Status AddTokens(const std::vector<AddedToken>& settled);

  std::unique_ptr<TokenModel> model_;
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  AddedTokenMatcher raw_added_;
  AddedTokenMatcher normalized_added_;
  Vocabulary vocabulary_;
  Result<Decoder> decoder_ = Decoder();
  std::unordered_map<int32_t, std::string> normalized_content_;  // where it is not the content
  std::set<std::string, std::less<>> special_content_;
};

}  // namespace bouquet::text
