#include "testing/test_data.h"

#include <cstdlib>
#include <random>

namespace bouquet::testing {
namespace {

namespace fs = std::filesystem;

std::string Environment(const char* name, std::string otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : std::move(otherwise);
}

}  // namespace

fs::path SourcePath(const std::string& name) { return fs::path(BOUQUET_SOURCE_DIR) / name; }

fs::path TestDataPath(const std::string& name) {
  const fs::path given = Environment("BOUQUET_DATA", SourcePath("../shared/data").string());
  // Packed data (it has an `unpack` script) is read from the build folder, where the ctest fixture
  // unpacked it.
  const fs::path root =
      fs::exists(given / "unpack") ? fs::path(BOUQUET_BINARY_DIR) / "test_data" : given;
  return root / name;
}

fs::path DemoModelPath() {
  return Environment("BOUQUET_DEMO_MODEL", SourcePath("build/models/all-MiniLM-L6-v2").string());
}

fs::path UnicodeDataPath(const std::string& name) {
  return fs::path(BOUQUET_BINARY_DIR) / "unicode_data" / name;
}

std::string MissingReason(const fs::path& path, const char* variable) {
  if (fs::exists(path)) {
    return {};
  }
  return std::string(variable) + " not found: tried " + path.string();
}

bool TestDataRequired() { return Environment("BOUQUET_DATA_REQUIRED", "0") == "1"; }

TemporaryFolder::TemporaryFolder() {
  std::random_device random;
  path_ = fs::temp_directory_path() /
          ("bouquet_test_" + std::to_string(random()) + std::to_string(random()));
  fs::create_directories(path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace bouquet::testing
