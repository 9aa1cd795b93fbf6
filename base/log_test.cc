#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/json.h"

namespace bouquet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(LogTest, WritesOneJsonObjectALineWithTheMessageEscaped) {
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(StartLogging("info", "json").ok());
  LogInfo("a \"quoted\" {}", "line\nbreak");
  LogDebug("not shown");
  spdlog::default_logger()->flush();
  const std::string out = ::testing::internal::GetCapturedStderr();
  const auto document = JsonDocument::Parse(out, "log");
  ASSERT_TRUE(document.ok()) << out;
  const JsonObject object = JsonObject::From(document->root(), "log").value();
  EXPECT_EQ(object.RequiredString("message").value(), "a \"quoted\" line\nbreak");
  EXPECT_EQ(object.RequiredString("level").value(), "info");
  EXPECT_THAT(out, Not(HasSubstr("not shown")));
}

TEST(LogTest, RefusesUnknownLevelsAndFormats) {
  EXPECT_THAT(StartLogging("loud", "text").message(),
              HasSubstr("must be debug, info, warning, error or off: loud"));
  EXPECT_THAT(StartLogging("info", "xml").message(), HasSubstr("must be text or json: xml"));
}

}  // namespace
}  // namespace bouquet
