#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace bouquet {
namespace {

Result<int> Half(int value) {
  if (value % 2 != 0) {
    return InvalidArgument("value must be even: " + std::to_string(value), "value");
  }
  return value / 2;
}

Result<int> Quarter(int value) {
  ASSIGN_OR_RETURN(const int half, Half(value));
  return Half(half);
}

Status CheckQuarter(int value) {
  RETURN_IF_ERROR(Quarter(value).status());
  return {};
}

TEST(StatusTest, CarriesCodeMessageAndField) {
  const Status status = OutOfRange("too many inputs: 3000, limit 2048", "input");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kOutOfRange);
  EXPECT_EQ(status.field(), "input");
  EXPECT_EQ(status.ToString(), "OUT_OF_RANGE: input: too many inputs: 3000, limit 2048");
  EXPECT_EQ(Status().ToString(), "OK");
}

TEST(StatusTest, CopiesAndMovesKeepTheError) {
  Status status = Internal("broken");
  const Status copy = status;
  const Status moved = std::move(status);
  EXPECT_EQ(copy.message(), "broken");
  EXPECT_EQ(moved.message(), "broken");
  Status assigned;
  assigned = copy;
  EXPECT_EQ(assigned.code(), StatusCode::kInternal);
  assigned = Status();
  EXPECT_TRUE(assigned.ok());
}

TEST(StatusTest, HasTheNumbersOfGrpc) {
  EXPECT_EQ(static_cast<int>(StatusCode::kInvalidArgument), 3);
  EXPECT_EQ(static_cast<int>(StatusCode::kDeadlineExceeded), 4);
  EXPECT_EQ(static_cast<int>(StatusCode::kResourceExhausted), 8);
  EXPECT_EQ(static_cast<int>(StatusCode::kUnavailable), 14);
  EXPECT_EQ(static_cast<int>(StatusCode::kUnauthenticated), 16);
  EXPECT_EQ(StatusCodeName(StatusCode::kUnauthenticated), "UNAUTHENTICATED");
}

TEST(ResultTest, ReturnsTheFirstErrorToTheCaller) {
  EXPECT_EQ(Quarter(12).value(), 3);
  EXPECT_EQ(Quarter(6).status().message(), "value must be even: 3");
  EXPECT_EQ(CheckQuarter(7).field(), "value");
  EXPECT_TRUE(CheckQuarter(8).ok());
}

TEST(ResultTest, HoldsValuesThatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  const std::unique_ptr<int> value = std::move(result).value();
  EXPECT_EQ(*value, 7);
}

TEST(ResultDeathTest, AbortsWhenTheValueOfAnErrorIsTaken) {
  EXPECT_DEATH((void)Half(1).value(), "check failed: ok\\(\\)");
}

TEST(CheckDeathTest, PrintsBothValues) {
  const int left = 3;
  EXPECT_DEATH(CHECK_EQ(left, 4), "check failed: left == 4: 3 against 4");
}

}  // namespace
}  // namespace bouquet
