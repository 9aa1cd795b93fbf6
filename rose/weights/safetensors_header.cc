#include "rose/weights/safetensors_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "base/json.h"

namespace bouquet::rose {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr size_t kMaxDimensions = 8;

struct DtypeSize {
  std::string_view name;
  uint64_t bytes;
};
constexpr std::array<DtypeSize, 14> kDtypes = {{{"BOOL", 1},
                                                {"U8", 1},
                                                {"I8", 1},
                                                {"F8_E4M3", 1},
                                                {"F8_E5M2", 1},
                                                {"I16", 2},
                                                {"U16", 2},
                                                {"F16", 2},
                                                {"BF16", 2},
                                                {"I32", 4},
                                                {"U32", 4},
                                                {"F32", 4},
                                                {"F64", 8},
                                                {"I64", 8}}};

Status Bad(std::string_view source, std::string_view what) {
  return InvalidArgument(fmt::format("{}: not a valid safetensors file: {}", source, what));
}

Status BadTensor(std::string_view source, std::string_view name, std::string_view what) {
  return InvalidArgument(
      fmt::format("{}: not a valid safetensors file: tensor {}: {}", source, name, what),
      std::string(name));
}

Result<uint64_t> DtypeBytesOf(std::string_view source, const StoredTensor& tensor) {
  for (const DtypeSize& dtype : kDtypes) {
    if (dtype.name == tensor.dtype) {
      return dtype.bytes;
    }
  }
  return BadTensor(source, tensor.name, fmt::format("dtype is unknown: {}", tensor.dtype));
}

Status ReadShape(std::string_view source, const JsonObject& entry, StoredTensor& tensor) {
  const auto stated = entry.Element("shape");
  array sizes;
  if (!stated || stated->get_array().get(sizes) != simdjson::SUCCESS) {
    return BadTensor(source, tensor.name, "\"shape\" must be an array of sizes");
  }
  uint64_t count = 1;
  for (const element item : sizes) {
    uint64_t size = 0;
    if (item.get_uint64().get(size) != simdjson::SUCCESS || size > INT64_MAX) {
      return BadTensor(source, tensor.name, "\"shape\" must hold sizes of 0 and more");
    }
    if (tensor.shape.size() == kMaxDimensions) {
      return BadTensor(source, tensor.name,
                       fmt::format("\"shape\" has more than {} dimensions", kMaxDimensions));
    }
    if (__builtin_mul_overflow(count, size, &count) || count > INT64_MAX) {
      return BadTensor(source, tensor.name, "\"shape\" overflows 63 bits");
    }
    tensor.shape.push_back(static_cast<int64_t>(size));
  }
  tensor.num_elements = static_cast<int64_t>(count);
  return {};
}

Status ReadOffsets(std::string_view source, const JsonObject& entry, uint64_t data_bytes,
                   StoredTensor& tensor) {
  const auto stated = entry.Element("data_offsets");
  array offsets;
  if (!stated || stated->get_array().get(offsets) != simdjson::SUCCESS || offsets.size() != 2 ||
      offsets.at(0).get_uint64().get(tensor.begin) != simdjson::SUCCESS ||
      offsets.at(1).get_uint64().get(tensor.end) != simdjson::SUCCESS) {
    return BadTensor(source, tensor.name, "\"data_offsets\" must be two offsets of 0 and more");
  }
  if (tensor.begin > tensor.end || tensor.end > data_bytes) {
    return BadTensor(source, tensor.name,
                     fmt::format("\"data_offsets\" must rise and end within the {} bytes of data "
                                 "(is the file truncated?): {}..{}",
                                 data_bytes, tensor.begin, tensor.end));
  }
  return {};
}

Result<StoredTensor> ReadTensor(std::string_view source, std::string_view name, element value,
                                uint64_t data_bytes) {
  StoredTensor tensor;
  tensor.name = std::string(name);
  ASSIGN_OR_RETURN(const JsonObject entry,
                   JsonObject::From(value, fmt::format("{}: tensor {}", source, name)));
  ASSIGN_OR_RETURN(tensor.dtype, entry.RequiredString("dtype"));
  ASSIGN_OR_RETURN(const uint64_t element_bytes, DtypeBytesOf(source, tensor));
  RETURN_IF_ERROR(ReadShape(source, entry, tensor));
  RETURN_IF_ERROR(ReadOffsets(source, entry, data_bytes, tensor));
  uint64_t expected = 0;
  if (__builtin_mul_overflow(static_cast<uint64_t>(tensor.num_elements), element_bytes,
                             &expected) ||
      expected != tensor.end - tensor.begin) {
    return BadTensor(source, tensor.name,
                     fmt::format("{} of {} does not fill its {} bytes", ShapeText(tensor.shape),
                                 tensor.dtype, tensor.end - tensor.begin));
  }
  return tensor;
}

Status CheckCover(std::string_view source, const std::vector<StoredTensor>& tensors,
                  uint64_t data_bytes) {
  uint64_t covered = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin != covered) {
      return BadTensor(source, tensor.name,
                       fmt::format("data {} the tensor before it: begins at {}, expected {}",
                                   tensor.begin < covered ? "overlaps" : "leaves a gap behind",
                                   tensor.begin, covered));
    }
    covered = tensor.end;
  }
  if (covered != data_bytes) {
    return Bad(source,
               fmt::format("{} bytes of data, but the tensors end at {}", data_bytes, covered));
  }
  return {};
}

Result<std::string_view> HeaderText(std::span<const std::byte> file, std::string_view source) {
  if (file.size() < kLengthBytes) {
    return Bad(source, fmt::format("{} bytes are too few to hold a header", file.size()));
  }
  uint64_t length = 0;
  for (uint64_t i = 0; i < kLengthBytes; ++i) {
    length |= std::to_integer<uint64_t>(file[i]) << (8 * i);
  }
  if (length > kMaxHeaderBytes || length > file.size() - kLengthBytes) {
    return Bad(source, fmt::format("header length must be within the file and at most {}: {} in a "
                                   "file of {} bytes",
                                   kMaxHeaderBytes, length, file.size()));
  }
  const auto* begin = reinterpret_cast<const char*>(file.data()) + kLengthBytes;
  return std::string_view(begin, length);
}

}  // namespace

std::string ShapeText(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Result<SafetensorsHeader> ParseSafetensorsHeader(std::span<const std::byte> file,
                                                 std::string_view source) {
  ASSIGN_OR_RETURN(const std::string_view text, HeaderText(file, source));
  ASSIGN_OR_RETURN(const JsonDocument document,
                   JsonDocument::Parse(text, fmt::format("{}: header", source)));
  ASSIGN_OR_RETURN(const JsonObject root, JsonObject::From(document.root(), document.source()));
  SafetensorsHeader header;
  header.data_offset = kLengthBytes + text.size();
  const uint64_t data_bytes = file.size() - header.data_offset;
  std::set<std::string_view> names;
  for (const auto [name, value] : root.object()) {
    if (!names.insert(name).second) {
      return BadTensor(source, name, "is listed twice");
    }
    if (name == "__metadata__") {
      continue;
    }
    ASSIGN_OR_RETURN(StoredTensor tensor, ReadTensor(source, name, value, data_bytes));
    header.tensors.push_back(std::move(tensor));
  }
  // Empty tensors share their begin with the next one, so the end decides between them.
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const StoredTensor& a, const StoredTensor& b) {
              return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
            });
  RETURN_IF_ERROR(CheckCover(source, header.tensors, data_bytes));
  return header;
}

}  // namespace bouquet::rose
