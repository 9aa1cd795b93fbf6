#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/check.h"
#include "rose/tensor/dtype.h"

namespace bouquet::rose {

/// A row-major matrix somewhere in a backend's memory: [rows, cols], `row_stride` elements from row
/// to row. Does not own. A vector is a matrix of one row. Only the backend that made the memory may
/// read or write it.
struct TensorView {
  void* data = nullptr;
  Dtype dtype = Dtype::kFloat32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_stride = 0;

  bool empty() const { return data == nullptr; }

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }

  /// Rows begin .. begin + count: [count, cols].
  TensorView Rows(int64_t begin, int64_t count) const {
    CHECK_LE(begin + count, rows);
    TensorView view = *this;
    view.data = static_cast<std::byte*>(data) +
                begin * row_stride * static_cast<int64_t>(DtypeBytes(dtype));
    view.rows = count;
    return view;
  }

  /// Columns begin .. begin + count of every row: [rows, count].
  TensorView Columns(int64_t begin, int64_t count) const {
    CHECK_LE(begin + count, cols);
    TensorView view = *this;
    view.data = static_cast<std::byte*>(data) + begin * static_cast<int64_t>(DtypeBytes(dtype));
    view.cols = count;
    return view;
  }
};

/// A matrix in host memory that the caller keeps alive: weights as a file maps them. Contiguous
/// rows.
struct HostTensor {
  const void* data = nullptr;
  Dtype dtype = Dtype::kFloat32;
  int64_t rows = 0;
  int64_t cols = 0;
};

/// Owns a backend's memory; made by Backend::Allocate or Upload. Move-only. Must die before its
/// backend.
class Tensor {
 public:
  using Deleter = void (*)(void* data, size_t bytes);

  Tensor() = default;
  Tensor(TensorView view, size_t bytes, Deleter deleter)
      : view_(view), storage_(view.data, Free{bytes, deleter}) {}

  const TensorView& view() const { return view_; }
  bool empty() const { return storage_ == nullptr; }

 private:
  struct Free {
    size_t bytes;
    Deleter deleter;
    // Not member initialisers: inside Tensor they would come too late for unique_ptr's constructor.
    Free() : bytes(0), deleter(nullptr) {}
    Free(size_t size, Deleter function) : bytes(size), deleter(function) {}
    void operator()(void* data) const { deleter(data, bytes); }
  };
  TensorView view_;
  std::unique_ptr<void, Free> storage_;
};

}  // namespace bouquet::rose
