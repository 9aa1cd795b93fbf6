#include "rose/weights/weight_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace bouquet::rose {
namespace {

// Pages of weights that loading leaves behind, so that a large model needs little host memory.
constexpr uint64_t kBytesBetweenReleases = uint64_t{64} << 20;

std::optional<Dtype> ReadableDtype(std::string_view name) {
  if (name == "F32") {
    return Dtype::kFloat32;
  }
  if (name == "F16") {
    return Dtype::kFloat16;
  }
  if (name == "BF16") {
    return Dtype::kBfloat16;
  }
  return std::nullopt;
}

// LayerNorm's parameters in checkpoints converted from the first release.
std::string OlderName(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kOlderEnds = {
      {{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}}};
  for (const auto& [end, older_end] : kOlderEnds) {
    if (name.ends_with(end)) {
      return name.substr(0, name.size() - end.size()) + std::string(older_end);
    }
  }
  return name;
}

}  // namespace

Result<WeightSet> WeightSet::Open(const std::vector<std::filesystem::path>& paths) {
  WeightSet set;
  for (const std::filesystem::path& path : paths) {
    ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
    for (size_t i = 0; i < file.header().tensors.size(); ++i) {
      const std::string& name = file.header().tensors[i].name;
      const auto [at, inserted] = set.by_name_.emplace(name, Location{set.files_.size(), i, false});
      if (!inserted) {
        return InvalidArgument(
            fmt::format("tensor is in two files: {}: {} and {}", name,
                        set.files_[at->second.file].path().string(), path.string()),
            name);
      }
    }
    set.files_.push_back(std::move(file));
  }
  return set;
}

bool WeightSet::Has(std::string_view stored_name) const { return by_name_.contains(stored_name); }

Result<HostTensor> WeightSet::TakeMatrix(const std::string& name, int64_t rows, int64_t cols) {
  const std::array<int64_t, 2> shape = {rows, cols};
  return Take(name, shape);
}

Result<HostTensor> WeightSet::TakeVector(const std::string& name, int64_t size) {
  const std::array<int64_t, 1> shape = {size};
  return Take(name, shape);
}

Result<HostTensor> WeightSet::Take(const std::string& name, std::span<const int64_t> shape) {
  auto at = by_name_.find(prefix_ + name);
  if (at == by_name_.end()) {
    at = by_name_.find(prefix_ + OlderName(name));
  }
  if (at == by_name_.end()) {
    return NotFound(fmt::format("tensor is missing: {}, expected with shape {} in {}",
                                prefix_ + name, ShapeText(shape), FileNames()),
                    name);
  }
  Location& location = at->second;
  const StoredTensor& stored = Stored(location);
  SafetensorsFile& file = files_[location.file];
  if (!std::equal(shape.begin(), shape.end(), stored.shape.begin(), stored.shape.end())) {
    return InvalidArgument(
        fmt::format("tensor has another shape than config.json asks for: {} in {}: expected {}, "
                    "found {}",
                    at->first, file.path().string(), ShapeText(shape), ShapeText(stored.shape)),
        name);
  }
  const std::optional<Dtype> dtype = ReadableDtype(stored.dtype);
  if (!dtype) {
    return InvalidArgument(
        fmt::format("tensor has a dtype that is not read: {} in {}: expected F32, F16 or BF16, "
                    "found {}",
                    at->first, file.path().string(), stored.dtype),
        name);
  }
  location.taken = true;
  // What was taken before has most likely been packed. If not, its pages come back from the file.
  bytes_since_release_ += stored.end - stored.begin;
  if (bytes_since_release_ > kBytesBetweenReleases) {
    ReleasePages();
    bytes_since_release_ = 0;
  }
  const int64_t rows = shape.size() == 1 ? 1 : shape[0];
  return HostTensor{file.Data(stored), *dtype, rows, shape.back()};
}

std::string_view WeightSet::WithoutPrefix(std::string_view stored_name) const {
  return stored_name.starts_with(prefix_) ? stored_name.substr(prefix_.size()) : stored_name;
}

Status WeightSet::CheckNothingLeft(const std::function<bool(std::string_view)>& is_harmless) const {
  for (const auto& [name, location] : by_name_) {
    if (!location.taken && !is_harmless(WithoutPrefix(name))) {
      return InvalidArgument(
          fmt::format("tensor is unexpected: {} in {}: the network that config.json describes has "
                      "no such tensor, found with shape {}",
                      name, files_[location.file].path().string(),
                      ShapeText(Stored(location).shape)),
          name);
    }
  }
  return {};
}

int64_t WeightSet::CountTaken(const std::function<bool(std::string_view)>& is_member) const {
  int64_t count = 0;
  for (const auto& [name, location] : by_name_) {
    if (location.taken && is_member(WithoutPrefix(name))) {
      count += Stored(location).num_elements;
    }
  }
  return count;
}

int64_t WeightSet::TakenBytes() const {
  uint64_t bytes = 0;
  for (const auto& [name, location] : by_name_) {
    if (location.taken) {
      bytes += Stored(location).end - Stored(location).begin;
    }
  }
  return static_cast<int64_t>(bytes);
}

std::string WeightSet::FileNames() const {
  std::string names;
  for (const SafetensorsFile& file : files_) {
    names += names.empty() ? "" : ", ";
    names += file.path().string();
  }
  return names;
}

void WeightSet::ReleasePages() const {
  for (const SafetensorsFile& file : files_) {
    file.ReleasePages();
  }
}

}  // namespace bouquet::rose
