#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace bouquet::model {

/// 128-bit FNV-1a: h = (h xor byte) · prime, over every byte. Tells files apart that differ by
/// accident; it is no protection against someone who wants two files to look alike.
class Fnv1a128 {
 public:
  __extension__ using Uint128 = unsigned __int128;

 public:
  void Add(std::string_view bytes);
  std::string Hex() const;  // 32 digits

 private:
  // Offset basis and prime as published with the algorithm.
  Uint128 state_ = (static_cast<Uint128>(0x6c62272e07bb0142ULL) << 64) | 0x62b821756295c58dULL;
};

/// What decides a model's vectors: every byte of `config_files`, and of each of `weight_files` its
/// size and 16 samples of 4 KB at even distances (the first holds names and shapes), since hashing
/// gigabytes would cost seconds at each start. Names are taken relative to `root`. "fnv1a128-" and
/// 32 hexadecimal digits. Error: kNotFound naming a file that cannot be read.
Result<std::string> ModelIdentity(const std::filesystem::path& root,
                                  const std::vector<std::filesystem::path>& config_files,
                                  const std::vector<std::filesystem::path>& weight_files);

}  // namespace bouquet::model
