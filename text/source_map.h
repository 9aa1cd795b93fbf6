#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace bouquet::text {

// Stages that rewrite text are templates over one of these two, so that the code that finds where
// text came from is the code that makes it.

/// Which byte of its input each byte stands for that a stage writes.
class SourceMap {
 public:
  static constexpr bool kTracks = true;

  /// Overwrites `sources`: by byte of the output.
  explicit SourceMap(std::vector<uint32_t>& sources) : sources_(&sources) { sources.clear(); }

  /// The next `count` bytes written are bytes of the input, from `from` on.
  void Run(size_t from, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      sources_->push_back(static_cast<uint32_t>(from + i));
    }
  }
  /// The next `count` bytes written all stand for the byte `from`.
  void Same(size_t from, size_t count) {
    sources_->insert(sources_->end(), count, static_cast<uint32_t>(from));
  }

 private:
  std::vector<uint32_t>* sources_;
};

// Which input character an output character stands for is, in the reference, often a matter of
// counting: each output character claims the next so many input characters and stands for the first
// of them, or, with no claim, for what was claimed last. One that a character decomposes to claims
// 1, the others 0; one that is composed of several claims what they would have. Where marks change
// places, claims move with them, but the order in which they are served does not.

/// Finds what each character of `output` stands for; `claims` has one number for each.
void ServeClaims(std::string_view input, const std::vector<int32_t>& claims,
                 std::string_view output, SourceMap& sources);

/// For callers who want the text alone.
class NoSources {
 public:
  static constexpr bool kTracks = false;
  void Run(size_t /*from*/, size_t /*count*/) {}
  void Same(size_t /*from*/, size_t /*count*/) {}
};

}  // namespace bouquet::text
