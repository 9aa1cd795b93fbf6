#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/sentencepiece/model.pb.h"
#include "text/small_charsmap.h"

namespace bouquet::text {

/// SentencePiece models of our own for tests and fuzz targets: ids are easy to read.
///   0 <unk>  1 <s>  2 </s>; then in the order of the strings
inline sentencepiece::Model SmallSentencePieceModel(
    const std::vector<std::pair<std::string_view, float>>& pieces) {
  using sentencepiece::Model;
  Model model;
  const auto add = [&model](std::string_view piece, float score, Model::Piece::Type type) {
    Model::Piece* added = model.add_pieces();
    added->set_piece(std::string(piece));
    added->set_score(score);
    added->set_type(type);
  };
  add("<unk>", 0, Model::Piece::UNKNOWN);
  add("<s>", 0, Model::Piece::CONTROL);
  add("</s>", 0, Model::Piece::CONTROL);
  for (const auto& [piece, score] : pieces) {
    add(piece, score, Model::Piece::NORMAL);
  }
  return model;
}

/// 3 ▁  4 a  5 b  6 ▁a  7 ▁ab  8 é
inline sentencepiece::Model SmallUnigramModel() {
  sentencepiece::Model model = SmallSentencePieceModel(
      {{"▁", -2}, {"a", -2.5}, {"b", -3}, {"▁a", -3.5}, {"▁ab", -5}, {"é", -6}});
  model.mutable_normalizer_spec()->set_precompiled_charsmap(SmallCharsmapBlob());
  return model;
}

/// 3 ▁a  4 ab  5 ▁ab  6 ▁▁  7 ▁  8 a  9 b  10 é: merged in this order
inline sentencepiece::Model SmallBpeModel() {
  sentencepiece::Model model = SmallSentencePieceModel(
      {{"▁a", 0}, {"ab", -1}, {"▁ab", -2}, {"▁▁", -3}, {"▁", -4}, {"a", -5}, {"b", -6}, {"é", -7}});
  model.mutable_trainer_spec()->set_model_type(sentencepiece::Model::Training::BPE);
  model.mutable_normalizer_spec()->set_remove_extra_whitespaces(false);
  return model;
}

}  // namespace bouquet::text
