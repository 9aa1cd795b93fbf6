#include "base/status.h"

#include <array>

namespace bouquet {
namespace {

constexpr std::array<std::string_view, 17> kCodeNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

const std::string kEmpty;

}  // namespace

std::string_view StatusCodeName(StatusCode code) {
  const auto index = static_cast<size_t>(code);
  return index < kCodeNames.size() ? kCodeNames[index] : "UNKNOWN";
}

Status::Status(StatusCode code, std::string message, std::string field)
    : error_(code == StatusCode::kOk
                 ? nullptr
                 : std::make_unique<Error>(Error{code, std::move(message), std::move(field), 0})) {}

Status::Status(const Status& other)
    : error_(other.ok() ? nullptr : std::make_unique<Error>(*other.error_)) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) {
    error_ = other.ok() ? nullptr : std::make_unique<Error>(*other.error_);
  }
  return *this;
}

const std::string& Status::message() const { return ok() ? kEmpty : error_->message; }

const std::string& Status::field() const { return ok() ? kEmpty : error_->field; }

Status Status::WithRetryAfter(int32_t seconds) && {
  if (!ok()) {
    error_->retry_after_seconds = seconds;
  }
  return std::move(*this);
}

std::string Status::ToString() const {
  if (ok()) {
    return "OK";
  }
  std::string text(StatusCodeName(code()));
  text += ": ";
  if (!error_->field.empty()) {
    text += error_->field;
    text += ": ";
  }
  return text + error_->message;
}

Status InvalidArgument(std::string message, std::string field) {
  return Status(StatusCode::kInvalidArgument, std::move(message), std::move(field));
}
Status DeadlineExceeded(std::string message) {
  return Status(StatusCode::kDeadlineExceeded, std::move(message));
}
Status NotFound(std::string message, std::string field) {
  return Status(StatusCode::kNotFound, std::move(message), std::move(field));
}
Status ResourceExhausted(std::string message) {
  return Status(StatusCode::kResourceExhausted, std::move(message));
}
Status FailedPrecondition(std::string message, std::string field) {
  return Status(StatusCode::kFailedPrecondition, std::move(message), std::move(field));
}
Status OutOfRange(std::string message, std::string field) {
  return Status(StatusCode::kOutOfRange, std::move(message), std::move(field));
}
Status Unimplemented(std::string message, std::string field) {
  return Status(StatusCode::kUnimplemented, std::move(message), std::move(field));
}
Status Internal(std::string message) { return Status(StatusCode::kInternal, std::move(message)); }
Status Unavailable(std::string message) {
  return Status(StatusCode::kUnavailable, std::move(message));
}
Status Cancelled(std::string message) { return Status(StatusCode::kCancelled, std::move(message)); }

}  // namespace bouquet
