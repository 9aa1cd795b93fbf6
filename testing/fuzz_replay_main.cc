// Runs a libFuzzer target as an ordinary test: every file of the corpus folders given, then
// mutations of each from a fixed seed. Not a substitute for `./dev fuzz`, which is guided by
// coverage.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr int kMutationsPerFile = 200;

void Mutate(std::string& text, std::mt19937& random) {
  const int edits = 1 + static_cast<int>(random() % 4);
  for (int i = 0; i < edits; ++i) {
    const size_t at = text.empty() ? 0 : random() % text.size();
    switch (random() % 4) {
      case 0: text.insert(at, 1, static_cast<char>(random())); break;
      case 1: text.erase(at, 1 + random() % 8); break;
      case 2:
        if (!text.empty()) {
          text[at] = static_cast<char>(random());
        }
        break;
      default: text.insert(at, text.substr(at, random() % 16));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::mt19937 random(20261129);
  size_t files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) {
        continue;
      }
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string original((std::istreambuf_iterator<char>(in)),
                                 std::istreambuf_iterator<char>());
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(original.data()), original.size());
      for (int k = 0; k < kMutationsPerFile; ++k) {
        std::string text = original;
        Mutate(text, random);
        LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
      }
      ++files;
    }
  }
  std::printf("%zu corpus files, %d mutations of each\n", files, kMutationsPerFile);
  return files == 0 ? 1 : 0;
}
