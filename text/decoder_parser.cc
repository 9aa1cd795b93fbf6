#include <fmt/format.h>

#include <string>

#include "text/decoder.h"
#include "text/stage_json.h"

namespace bouquet::text {
namespace {

using Kind = DecoderStage::Kind;

constexpr int64_t kMaxStrip = 1 << 20;

Status ParseMetaspace(const JsonObject& json, DecoderStage& stage) {
  stage.kind = Kind::kMetaspace;
  ASSIGN_OR_RETURN(stage.pattern, RequiredCharacter(json, "replacement"));
  ASSIGN_OR_RETURN(const std::optional<std::string> scheme, json.String("prepend_scheme"));
  stage.drops_first_mark = scheme.value_or("always") != "never";
  return {};
}

Status ParseReplace(const JsonObject& json, DecoderStage& stage) {
  stage.kind = Kind::kReplace;
  ASSIGN_OR_RETURN(StagePattern pattern, ParsePattern(json, "decoder Replace"));
  if (pattern.is_regex) {
    ASSIGN_OR_RETURN(stage.regex, CompilePattern(json, pattern));
  } else {
    stage.pattern = std::move(pattern.text);
  }
  ASSIGN_OR_RETURN(stage.content, ParseContent(json));
  return {};
}

Status ParseStrip(const JsonObject& json, DecoderStage& stage) {
  stage.kind = Kind::kStrip;
  ASSIGN_OR_RETURN(stage.pattern, RequiredCharacter(json, "content"));
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
  return stage.content.empty()
             ? NotServed(json, "decoder", "CTC with an empty \"word_delimiter_token\"")
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
      return NotServed(json, "decoder", "BPEDecoder with an empty \"suffix\"");
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
    return NotServed(json, "decoder", type);
  }
  return stage;
}

}  // namespace

Result<Decoder> ParseDecoder(const JsonObject& root) {
  ASSIGN_OR_RETURN(const std::optional<JsonObject> json, root.Object("decoder"));
  if (!json) {
    return Decoder();
  }
  std::vector<DecoderStage> stages;
  RETURN_IF_ERROR(ForEachStage(root, "decoder", "decoders",
                               [&](const std::string& type, const JsonObject& part) -> Status {
                                 ASSIGN_OR_RETURN(DecoderStage stage, ParseStage(type, part));
                                 stages.push_back(std::move(stage));
                                 return {};
                               }));
  return Decoder(std::move(stages));
}

}  // namespace bouquet::text
