#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace bouquet::testing {

/// The real tokenizers and texts (BOUQUET_DATA, default ../shared/data beside the project),
/// unpacked once into <build>/test_data by the ctest fixture. Every test names its files through
/// here. `name` is such as "tokenizers/bert-uncased/tokenizer.json".
std::filesystem::path TestDataPath(const std::string& name);

/// The demo's model (all-MiniLM-L6-v2) that `./dev setup` fetched: BOUQUET_DEMO_MODEL, default
/// build/models/all-MiniLM-L6-v2.
std::filesystem::path DemoModelPath();

/// A file of the Unicode Consortium, of the distribution's package unicode-data, unpacked into
/// <build>/unicode_data by the same fixture. `name` is such as "NormalizationTest.txt".
std::filesystem::path UnicodeDataPath(const std::string& name);

/// Why `path` cannot be used, or empty. Used by the macro below.
std::string MissingReason(const std::filesystem::path& path, const char* variable);
bool TestDataRequired();

/// A file written by this repository's own tools: golden vectors and so on, relative to the
/// project's root.
std::filesystem::path SourcePath(const std::string& name);

/// A fresh folder under the system's temporary folder, removed with everything in it at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace bouquet::testing

// Skips the test visibly when the file is absent; fails it instead when BOUQUET_DATA_REQUIRED=1.
#define REQUIRE_TEST_DATA(name) REQUIRE_FILE(::bouquet::testing::TestDataPath(name), "BOUQUET_DATA")
#define REQUIRE_DEMO_MODEL() REQUIRE_FILE(::bouquet::testing::DemoModelPath(), "BOUQUET_DEMO_MODEL")
#define REQUIRE_UNICODE_DATA(name) \
  REQUIRE_FILE(::bouquet::testing::UnicodeDataPath(name), "package unicode-data")
#define REQUIRE_FILE(path, variable)                                                  \
  if (const std::string missing_ = ::bouquet::testing::MissingReason(path, variable); \
      !missing_.empty()) {                                                            \
    if (::bouquet::testing::TestDataRequired()) {                                     \
      FAIL() << missing_;                                                             \
    }                                                                                 \
    GTEST_SKIP() << missing_;                                                         \
  }                                                                                   \
  static_assert(true)
