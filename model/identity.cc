#include "model/identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <system_error>

#include "model/config_file.h"

namespace bouquet::model {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSampleBytes = 4096;
constexpr uint64_t kSamples = 16;

// The lengths keep "ab" + "c" apart from "a" + "bc".
void AddNamed(std::string_view name, std::string_view bytes, Fnv1a128& hash) {
  hash.Add(fmt::format("{} {} {}\n", name.size(), name, bytes.size()));
  hash.Add(bytes);
}

Result<std::string> WeightSamples(const fs::path& path) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  std::ifstream in(path, std::ios::binary);
  if (error || !in) {
    return NotFound(fmt::format("cannot read the file that holds weights: {}", path.string()));
  }
  std::string samples = fmt::format("{}\n", size);
  std::string block;
  for (uint64_t i = 0; i < kSamples; ++i) {
    const uint64_t begin = size <= kSampleBytes ? 0 : (size - kSampleBytes) / (kSamples - 1) * i;
    block.resize(std::min(size, kSampleBytes));
    in.seekg(static_cast<std::streamoff>(begin));
    if (!in.read(block.data(), static_cast<std::streamsize>(block.size()))) {
      return NotFound(fmt::format("cannot read the file that holds weights: {}", path.string()));
    }
    samples += block;
  }
  return samples;
}

}  // namespace

void Fnv1a128::Add(std::string_view bytes) {
  constexpr Uint128 kPrime = (static_cast<Uint128>(1) << 88) | 0x13b;
  for (const char byte : bytes) {
    state_ = (state_ ^ static_cast<unsigned char>(byte)) * kPrime;
  }
}

std::string Fnv1a128::Hex() const {
  return fmt::format("{:016x}{:016x}", static_cast<uint64_t>(state_ >> 64),
                     static_cast<uint64_t>(state_));
}

Result<std::string> ModelIdentity(const fs::path& root, const std::vector<fs::path>& config_files,
                                  const std::vector<fs::path>& weight_files) {
  Fnv1a128 hash;
  for (const fs::path& path : config_files) {
    ASSIGN_OR_RETURN(const std::string bytes, ReadConfigBytes(path, "configuration"));
    AddNamed(path.lexically_relative(root).generic_string(), bytes, hash);
  }
  for (const fs::path& path : weight_files) {
    ASSIGN_OR_RETURN(const std::string samples, WeightSamples(path));
    AddNamed(path.lexically_relative(root).generic_string(), samples, hash);
  }
  return "fnv1a128-" + hash.Hex();
}

}  // namespace bouquet::model
