#include <fmt/format.h>

#include <string>

#include "text/decoder.h"
#include "text/unicode/utf8.h"

namespace bouquet::text {
namespace {

using simdjson::dom::element;
using Kind = DecoderStage::Kind;

constexpr size_t kMaxStages = 64;
constexpr int64_t kMaxStrip = 1 << 20;

Status NotServed(const JsonObject& json, std::string_view what) {
  return Unimplemented(fmt::format("{}: decoder is not served: {}", json.where(), what), "type");
}

Status ParseMetaspace(const JsonObject& json, DecoderStage& stage) {
  stage.kind = Kind::kMetaspace;
  ASSIGN_OR_RETURN(stage.pattern, json.RequiredString("replacement"));
  if (unicode::CountCodePoints(stage.pattern) != 1) {
    return InvalidArgument(fmt::format("{}: \"replacement\" must be one character: \"{}\"",
                                       json.where(), stage.pattern),
                           "replacement");
  }
  ASSIGN_OR_RETURN(const std::optional<std::string> scheme, json.String("prepend_scheme"));
  stage.drops_first_mark = scheme.value_or("always") != "never";
  return {};
}

Status ParseReplace(const JsonObject& json, DecoderStage& stage) {
  stage.kind = Kind::kReplace;
  ASSIGN_OR_RETURN(const std::optional<JsonObject> pattern, json.Object("pattern"));
  if (!pattern || pattern->Has("Regex")) {
    return NotServed(json, "Replace with a Regex");
  }
  ASSIGN_OR_RETURN(stage.pattern, pattern->RequiredString("String"));
  ASSIGN_OR_RETURN(stage.content, json.RequiredString("content"));
  return stage.pattern.empty() ? NotServed(json, "Replace with an empty pattern") : Status();
}

Status ParseStrip(const JsonObject& json, DecoderStage& stage) {
  stage.kind = Kind::kStrip;
  ASSIGN_OR_RETURN(stage.pattern, json.RequiredString("content"));
  if (unicode::CountCodePoints(stage.pattern) != 1) {
    return InvalidArgument(
        fmt::format("{}: \"content\" must be one character: \"{}\"", json.where(), stage.pattern),
        "content");
  }
  ASSIGN_OR_RETURN(const int64_t start, json.RequiredInteger("start", 0, kMaxStrip));
  ASSIGN_OR_RETURN(const int64_t stop, json.RequiredInteger("stop", 0, kMaxStrip));
  stage.strip_start = static_cast<size_t>(start);
  stage.strip_stop = static_cast<size_t>(stop);
  return {};
}

Status ParseCtc(const JsonObject& json, DecoderStage& stage) {
  stage.kind = Kind::kCtc;
  ASSIGN_OR_RETURN(stage.pattern, json.RequiredString("pad_token"));
  ASSIGN_OR_RETURN(stage.content, json.RequiredString("word_delimiter_token"));
  ASSIGN_OR_RETURN(stage.clean_up, json.RequiredBool("cleanup"));
  return stage.content.empty() ? NotServed(json, "CTC with an empty \"word_delimiter_token\"")
                               : Status();
}

Result<DecoderStage> ParseStage(const std::string& type, const JsonObject& json) {
  DecoderStage stage;
  if (type == "WordPiece") {
    stage.kind = Kind::kWordPiece;
    ASSIGN_OR_RETURN(stage.pattern, json.RequiredString("prefix"));
    ASSIGN_OR_RETURN(stage.clean_up, json.RequiredBool("cleanup"));
  } else if (type == "ByteLevel") {
    stage.kind = Kind::kByteLevel;
  } else if (type == "Metaspace") {
    RETURN_IF_ERROR(ParseMetaspace(json, stage));
  } else if (type == "BPEDecoder") {
    stage.kind = Kind::kBpe;
    ASSIGN_OR_RETURN(stage.pattern, json.RequiredString("suffix"));
    if (stage.pattern.empty()) {
      return NotServed(json, "BPEDecoder with an empty \"suffix\"");
    }
  } else if (type == "ByteFallback") {
    stage.kind = Kind::kByteFallback;
  } else if (type == "Fuse") {
    stage.kind = Kind::kFuse;
  } else if (type == "Strip") {
    RETURN_IF_ERROR(ParseStrip(json, stage));
  } else if (type == "Replace") {
    RETURN_IF_ERROR(ParseReplace(json, stage));
  } else if (type == "CTC") {
    RETURN_IF_ERROR(ParseCtc(json, stage));
  } else {
    return NotServed(json, type);
  }
  return stage;
}

/// Sequences are laid flat.
Status AppendStages(const JsonObject& json, std::vector<DecoderStage>& stages) {
  ASSIGN_OR_RETURN(const std::string type, json.RequiredString("type"));
  if (type != "Sequence") {
    if (stages.size() == kMaxStages) {
      return InvalidArgument(fmt::format("{}: too many stages, limit {}", json.where(), kMaxStages),
                             "decoder");
    }
    ASSIGN_OR_RETURN(DecoderStage stage, ParseStage(type, json));
    stages.push_back(std::move(stage));
    return {};
  }
  simdjson::dom::array parts;
  const std::optional<element> list = json.Element("decoders");
  if (!list || list->get_array().get(parts) != simdjson::SUCCESS) {
    return InvalidArgument(fmt::format("{}: \"decoders\" must be an array", json.where()),
                           "decoders");
  }
  for (const element part : parts) {
    ASSIGN_OR_RETURN(const JsonObject inner,
                     JsonObject::From(part, fmt::format("{}: \"decoders\"", json.where())));
    RETURN_IF_ERROR(AppendStages(inner, stages));
  }
  return {};
}

}  // namespace

Result<Decoder> ParseDecoder(const JsonObject& root) {
  ASSIGN_OR_RETURN(const std::optional<JsonObject> json, root.Object("decoder"));
  if (!json) {
    return Decoder();
  }
  std::vector<DecoderStage> stages;
  RETURN_IF_ERROR(AppendStages(*json, stages));
  return Decoder(std::move(stages));
}

}  // namespace bouquet::text
