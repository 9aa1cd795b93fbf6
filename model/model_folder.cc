#include "model/model_folder.h"

#include <fmt/format.h>

#include <system_error>

#include "model/config_file.h"
#include "model/identity.h"
#include "model/input_length.h"
#include "model/weight_files.h"

namespace bouquet::model {
namespace {

namespace fs = std::filesystem;

Result<Traits> ReadTraits(const fs::path& transformer_folder) {
  ASSIGN_OR_RETURN(const JsonDocument document,
                   ReadConfigFile(transformer_folder / "config.json", "the shape of the network"));
  ASSIGN_OR_RETURN(const JsonObject config, JsonObject::From(document.root(), document.source()));
  return ParseTraits(config);
}

// A folder named "." or ending in a slash still has a name.
std::string FolderName(const fs::path& path) {
  std::error_code ignored;
  fs::path absolute = fs::weakly_canonical(path, ignored);
  return absolute.has_filename() ? absolute.filename().string()
                                 : absolute.parent_path().filename().string();
}

std::vector<fs::path> ExistingConfigFiles(const fs::path& folder, const Pipeline& pipeline) {
  std::vector<fs::path> candidates = {pipeline.transformer_folder / "config.json",
                                      TransformerModuleFile(pipeline.transformer_folder),
                                      folder / "modules.json"};
  std::error_code ignored;
  for (const fs::path& module_folder : pipeline.module_folders) {
    candidates.push_back(module_folder / "config.json");
  }
  std::vector<fs::path> files;
  for (const fs::path& path : candidates) {
    if (!path.empty() && fs::is_regular_file(path, ignored)) {
      files.push_back(path);
    }
  }
  return files;
}

Result<std::vector<fs::path>> AllWeightFiles(const ModelFolder& folder) {
  std::vector<fs::path> files = folder.weight_files;
  for (const Module& module : folder.pipeline.modules) {
    if (const auto* dense = std::get_if<DenseModule>(&module)) {
      ASSIGN_OR_RETURN(const std::vector<fs::path> own, FindWeightFiles(dense->folder));
      files.insert(files.end(), own.begin(), own.end());
    }
  }
  return files;
}

}  // namespace

Result<ModelFolder> ModelFolder::Open(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    return NotFound(fmt::format("model folder does not exist: {}", path.string()));
  }
  ModelFolder folder;
  folder.path = path;
  folder.name = FolderName(path);
  ASSIGN_OR_RETURN(const fs::path transformer_folder, FindTransformerFolder(path));
  ASSIGN_OR_RETURN(folder.traits, ReadTraits(transformer_folder));
  ASSIGN_OR_RETURN(folder.pipeline, ParsePipeline(path, folder.traits));
  ASSIGN_OR_RETURN(UseDefaults defaults, ReadUseDefaults(path));
  folder.prompts = std::move(defaults.prompts);
  folder.truncate_dim = defaults.truncate_dim;
  if (folder.truncate_dim.value_or(1) > folder.pipeline.width) {
    return InvalidArgument(
        fmt::format("config_sentence_transformers.json: \"truncate_dim\" must be 1..{}, not {}",
                    folder.pipeline.width, *folder.truncate_dim),
        "truncate_dim");
  }
  ASSIGN_OR_RETURN(const InputRule rule, ReadInputRule(transformer_folder, folder.traits));
  folder.max_input_tokens = rule.max_tokens;
  folder.do_lower_case = rule.lower_case;
  ASSIGN_OR_RETURN(folder.weight_files, FindWeightFiles(transformer_folder));
  ASSIGN_OR_RETURN(const std::vector<fs::path> weight_files, AllWeightFiles(folder));
  ASSIGN_OR_RETURN(folder.identity,
                   ModelIdentity(path, ExistingConfigFiles(path, folder.pipeline), weight_files));
  return folder;
}

}  // namespace bouquet::model
