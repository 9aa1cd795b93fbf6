#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// GPT-2's way of writing bytes as text: printable ASCII and Latin-1 stand for themselves, the other
// 68 bytes for U+0100 and up in rising order, so that a space is "Ġ" and a newline "Ċ". Only the
// vocabulary is written so; text stays in bytes here.

namespace bouquet::text {

/// The byte that `c` stands for, or nullopt.
std::optional<uint8_t> ByteOfCharacter(char32_t c);

/// Appends the bytes that a token of such a vocabulary stands for; false, and nothing appended,
/// where one of its characters stands for none.
bool AppendBytesOfToken(std::string_view token, std::string& bytes);

/// The token of one byte.
std::string TokenOfByte(uint8_t byte);

}  // namespace bouquet::text
