#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace bouquet {

/// What went wrong, from edge to edge. The numbers are gRPC's (google.rpc.Code), so that Tulip's
/// mapping is a cast. Ivy maps them to HTTP in one table (ivy/api/error.cc).
enum class StatusCode : uint8_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,  // the value is wrong, and no operator's setting would make it right
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,  // over capacity now; a later try may succeed
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,  // over a limit that an operator can raise; the message names the flag
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

/// "INVALID_ARGUMENT" and so on, as gRPC spells them.
std::string_view StatusCodeName(StatusCode code);

/// Success, or a code with a message for the person who can act on it. Success costs one null
/// pointer. `field` is the path of the offending value where there is one: `input[3]`,
/// `dimensions`, `encoder.layer.0.weight`. Messages say the fixed text first and the values last,
/// and what would have been right.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message, std::string field = {});
  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  bool ok() const { return error_ == nullptr; }
  StatusCode code() const { return ok() ? StatusCode::kOk : error_->code; }
  const std::string& message() const;
  const std::string& field() const;

  /// Whole seconds after which another try may succeed (kResourceExhausted, kUnavailable); 0 when
  /// that is not known. Travels as HTTP's Retry-After and as gRPC's retry delay.
  int32_t retry_after_seconds() const { return ok() ? 0 : error_->retry_after_seconds; }
  Status WithRetryAfter(int32_t seconds) &&;

  /// "INVALID_ARGUMENT: dimensions must be 1..384: 512".
  std::string ToString() const;

 private:
  struct Error {
    StatusCode code;
    std::string message;
    std::string field;
    int32_t retry_after_seconds = 0;
  };
  std::unique_ptr<Error> error_;
};

Status InvalidArgument(std::string message, std::string field = {});
Status DeadlineExceeded(std::string message);
Status NotFound(std::string message, std::string field = {});
Status ResourceExhausted(std::string message);
Status FailedPrecondition(std::string message, std::string field = {});
Status OutOfRange(std::string message, std::string field = {});
Status Unimplemented(std::string message, std::string field = {});
Status Internal(std::string message);
Status Unavailable(std::string message);
Status Cancelled(std::string message);

/// A value, or the Status that explains its absence.
template <class T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose: `return value;` and `return InvalidArgument(…);`.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(T value) : content_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Status status) : content_(std::in_place_index<1>, std::move(status)) {
    CHECK(!std::get<1>(content_).ok());
  }

  bool ok() const { return content_.index() == 0; }
  Status status() const& { return ok() ? Status() : std::get<1>(content_); }
  Status status() && { return ok() ? Status() : std::move(std::get<1>(content_)); }
  StatusCode code() const { return ok() ? StatusCode::kOk : std::get<1>(content_).code(); }

  T& value() & {
    CHECK(ok());
    return std::get<0>(content_);
  }
  const T& value() const& {
    CHECK(ok());
    return std::get<0>(content_);
  }
  T&& value() && {
    CHECK(ok());
    return std::get<0>(std::move(content_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> content_;
};

#define BOUQUET_CONCAT_INNER(a, b) a##b
#define BOUQUET_CONCAT(a, b) BOUQUET_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expr)                                \
  do {                                                       \
    if (::bouquet::Status status_ = (expr); !status_.ok()) { \
      return status_;                                        \
    }                                                        \
  } while (false)

#define ASSIGN_OR_RETURN_INNER(result, lhs, expr) \
  auto result = (expr);                           \
  if (!result.ok()) {                             \
    return std::move(result).status();            \
  }                                               \
  lhs = std::move(result).value()
#define ASSIGN_OR_RETURN(lhs, expr) \
  ASSIGN_OR_RETURN_INNER(BOUQUET_CONCAT(result_, __LINE__), lhs, expr)

// The same for coroutines. g++ 12 miscompiles `co_await` inside conditional expressions, hence the
// named result.
#define CO_RETURN_IF_ERROR(expr)                             \
  do {                                                       \
    if (::bouquet::Status status_ = (expr); !status_.ok()) { \
      co_return status_;                                     \
    }                                                        \
  } while (false)

#define CO_ASSIGN_OR_RETURN_INNER(result, lhs, expr) \
  auto result = (expr);                              \
  if (!result.ok()) {                                \
    co_return std::move(result).status();            \
  }                                                  \
  lhs = std::move(result).value()
#define CO_ASSIGN_OR_RETURN(lhs, expr) \
  CO_ASSIGN_OR_RETURN_INNER(BOUQUET_CONCAT(result_, __LINE__), lhs, expr)

}  // namespace bouquet
