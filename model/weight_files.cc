#include "model/weight_files.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <system_error>

#include "model/config_file.h"

namespace bouquet::model {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxShards = 1000;

bool IsFile(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

Status CheckShardName(const JsonObject& index, std::string_view tensor, std::string_view name) {
  const fs::path path(name);
  if (name.empty() || path.filename() != path || path.extension() != ".safetensors") {
    return InvalidArgument(
        fmt::format("{}: \"weight_map\" must name .safetensors files beside it: tensor {}: {}",
                    index.where(), tensor, name),
        "weight_map");
  }
  return {};
}

Result<std::vector<fs::path>> ReadIndex(const fs::path& path) {
  ASSIGN_OR_RETURN(const JsonDocument document,
                   ReadConfigFile(path, "which shard holds which tensor"));
  ASSIGN_OR_RETURN(const JsonObject index, JsonObject::From(document.root(), document.source()));
  ASSIGN_OR_RETURN(const std::optional<JsonObject> weight_map, index.Object("weight_map"));
  if (!weight_map) {
    return InvalidArgument(fmt::format("{}: \"weight_map\" is missing", index.where()),
                           "weight_map");
  }
  std::set<std::string> names;
  for (const auto [tensor, value] : weight_map->object()) {
    std::string_view name;
    if (value.get_string().get(name) != simdjson::SUCCESS) {
      return InvalidArgument(
          fmt::format("{}: \"weight_map\" must hold file names: tensor {}", index.where(), tensor),
          "weight_map");
    }
    RETURN_IF_ERROR(CheckShardName(index, tensor, name));
    names.emplace(name);
  }
  if (names.empty() || names.size() > kMaxShards) {
    return InvalidArgument(fmt::format("{}: \"weight_map\" must name 1..{} files, not {}",
                                       index.where(), kMaxShards, names.size()),
                           "weight_map");
  }
  std::vector<fs::path> files;
  for (const std::string& name : names) {
    files.push_back(path.parent_path() / name);
    if (!IsFile(files.back())) {
      return NotFound(fmt::format("file is missing; it holds weights that {} lists: {}",
                                  path.filename().string(), files.back().string()));
    }
  }
  return files;
}

}  // namespace

Result<std::vector<fs::path>> FindWeightFiles(const fs::path& folder) {
  const fs::path single = folder / "model.safetensors";
  if (IsFile(single)) {
    return std::vector<fs::path>{single};
  }
  const fs::path index = folder / "model.safetensors.index.json";
  if (IsFile(index)) {
    return ReadIndex(index);
  }
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (IsFile(folder / name)) {
      return Unimplemented(fmt::format(
          "pickled weights are not read, since loading them can run any code: {}; convert them on "
          "a "
          "machine that trusts them: python -c \"import torch, safetensors.torch as s; "
          "s.save_file({{k: v.contiguous().clone() for k, v in torch.load('pytorch_model.bin', "
          "map_location='cpu', weights_only=True).items()}}, 'model.safetensors')\"",
          (folder / name).string()));
    }
  }
  return NotFound(
      fmt::format("file is missing; it holds the weights (model.safetensors.index.json would name "
                  "shards): {}",
                  single.string()));
}

}  // namespace bouquet::model
