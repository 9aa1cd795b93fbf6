#pragma once

#include <filesystem>
#include <vector>

#include "base/status.h"

namespace bouquet::model {

/// The safetensors files of a transformer or module folder: model.safetensors, or the shards that
/// model.safetensors.index.json names, sorted by name. Error: kNotFound naming what is missing,
/// also a shard that the index names; kUnimplemented, with how to convert them, when there are only
/// pickled weights.
Result<std::vector<std::filesystem::path>> FindWeightFiles(const std::filesystem::path& folder);

}  // namespace bouquet::model
