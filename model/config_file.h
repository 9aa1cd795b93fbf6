#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace bouquet::model {

/// No configuration file of a real model comes near this; tokenizer.json is not read here.
inline constexpr size_t kMaxConfigBytes = size_t{16} << 20;

/// Reads one JSON file of a model folder. `purpose` ends the sentence "it holds …" of the error
/// when the file is missing: "the shape of the network". Integers of more than 18 digits are read
/// as numbers with a fraction: `model_max_length` is commonly written as int(1e30), which the
/// parser would refuse together with the whole file. Error: kNotFound naming file and purpose;
/// kInvalidArgument when it is too large or not JSON.
Result<JsonDocument> ReadConfigFile(const std::filesystem::path& path, std::string_view purpose);

/// The same for a file that may be absent: nullopt then.
Result<std::optional<JsonDocument>> ReadOptionalConfigFile(const std::filesystem::path& path,
                                                           std::string_view purpose);

/// The raw bytes, for hashing. Error: kNotFound; kInvalidArgument above kMaxConfigBytes.
Result<std::string> ReadConfigBytes(const std::filesystem::path& path, std::string_view purpose);

/// `text` with "e0" behind every integer literal of more than 18 digits outside of strings.
std::string WidenHugeIntegers(std::string_view text);

}  // namespace bouquet::model
