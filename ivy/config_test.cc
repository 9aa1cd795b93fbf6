#include "ivy/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bouquet::ivy {
namespace {

using ::testing::HasSubstr;

void ExpectRefused(const Config& config, std::string_view flag) {
  const Status status = Validate(config);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << flag;
  EXPECT_EQ(status.field(), flag);
  EXPECT_THAT(status.message(), HasSubstr("--" + std::string(flag)));
}

TEST(ConfigTest, AcceptsItsOwnDefaults) { EXPECT_TRUE(Validate(Config()).ok()); }

TEST(ConfigTest, HoldsEveryLimitToItsBounds) {
  ExpectRefused({.port = -1}, "port");
  ExpectRefused({.port = 65'536}, "port");
  ExpectRefused({.http_threads = 0}, "http-threads");
  ExpectRefused({.max_body_bytes = 0}, "max-body-bytes");
  ExpectRefused({.max_header_bytes = 10}, "max-header-bytes");
  ExpectRefused({.max_connections = 0}, "max-connections");
  ExpectRefused({.max_concurrent_requests = -5}, "max-concurrent-requests");
  ExpectRefused({.max_json_depth = 3}, "max-json-depth");
  ExpectRefused({.max_inputs_per_request = 0}, "max-inputs-per-request");
  ExpectRefused({.read_timeout_ms = 0}, "read-timeout-ms");
  ExpectRefused({.request_timeout_ms = 0}, "request-timeout-ms");
  ExpectRefused({.drain_timeout_ms = -1}, "drain-timeout-ms");
}

TEST(ConfigTest, RefusesCombinationsThatCannotWork) {
  ExpectRefused({.max_body_bytes = 32 << 20, .max_buffered_bytes = 16 << 20}, "max-buffered-bytes");
  ExpectRefused({.max_tokens_per_request = 100, .max_input_tokens = 200}, "max-input-tokens");
  ExpectRefused({.api_key_file = "keys", .api_keys = "a"}, "api-key-file");
  ExpectRefused({.protect_metrics = true}, "protect-metrics");
}

TEST(ConfigTest, TakesOverLimitsWithoutARestart) {
  EXPECT_TRUE(CheckReload({}, {.max_body_bytes = 1 << 21, .max_inputs_per_request = 7}).ok());
  EXPECT_TRUE(CheckReload({.api_key_file = "a"}, {.api_key_file = "b"}).ok());
}

TEST(ConfigTest, NamesEveryFlagThatNeedsARestart) {
  const Status status = CheckReload({}, {.host = "0.0.0.0", .port = 1, .http_threads = 2});
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("--host, --port, --http-threads"));
  EXPECT_FALSE(CheckReload({}, {.cors_allow_origins = {"*"}}).ok());
  EXPECT_FALSE(CheckReload({.api_keys = "a"}, {.api_keys = "a", .protect_metrics = true}).ok());
  EXPECT_THAT(CheckReload({.api_keys = "a"}, {}).message(), HasSubstr("keys"));
}

}  // namespace
}  // namespace bouquet::ivy
