#include "ivy/handlers/service_fields.h"

#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bouquet::ivy {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

ServiceFields Read(const std::vector<http::Header>& headers) {
  http::Request request;
  request.headers = headers;
  auto fields = ReadServiceFields(request, milliseconds(1000));
  EXPECT_TRUE(std::holds_alternative<ServiceFields>(fields));
  return std::get<ServiceFields>(fields);
}

std::string FieldRefused(const http::Header& header) {
  http::Request request;
  const std::vector<http::Header> headers{header};
  request.headers = headers;
  const auto fields = ReadServiceFields(request, milliseconds(1000));
  const auto* error = std::get_if<api::Error>(&fields);
  return error == nullptr ? "none" : error->field;
}

TEST(ServiceFieldsTest, HasDefaults) {
  const ServiceFields fields = Read({});
  EXPECT_EQ(fields.traffic_class, model::TrafficClass::kInteractive);
  EXPECT_EQ(fields.timeout, milliseconds(1000));
  EXPECT_FALSE(fields.allow_partial);
  EXPECT_EQ(fields.trace.parent, "");
}

TEST(ServiceFieldsTest, ReadsThemInAnyCaseAndBoundsTheTimeout) {
  const ServiceFields fields = Read({{"X-Request-Timeout-Ms", "70"},
                                     {"X-BOUQUET-CLASS", "bulk"},
                                     {"x-bouquet-partial", "allow"}});
  EXPECT_EQ(fields.timeout, milliseconds(70));
  EXPECT_EQ(fields.traffic_class, model::TrafficClass::kBulk);
  EXPECT_TRUE(fields.allow_partial);
  EXPECT_EQ(Read({{"x-request-timeout-ms", "99999999"}}).timeout, milliseconds(1000));
}

TEST(ServiceFieldsTest, NamesTheHeaderThatIsWrong) {
  for (const std::string_view value : {"0", "-1", "1.5", "", "1s", "99999999999999999999"}) {
    EXPECT_EQ(FieldRefused({"x-request-timeout-ms", value}), "x-request-timeout-ms") << value;
  }
  EXPECT_EQ(FieldRefused({"x-bouquet-class", "fast"}), "x-bouquet-class");
  EXPECT_EQ(FieldRefused({"x-bouquet-partial", "yes"}), "x-bouquet-partial");
}

TEST(ServiceFieldsTest, PassesATraceOn) {
  const ServiceFields fields = Read({{"traceparent", kTrace}, {"tracestate", "a=1,b=2"}});
  EXPECT_EQ(fields.trace.parent, kTrace);
  EXPECT_EQ(fields.trace.state, "a=1,b=2");
  const std::string later = "01" + std::string(kTrace.substr(2)) + "-more";
  EXPECT_EQ(Read({{"traceparent", later}}).trace.parent, later);
}

TEST(ServiceFieldsTest, IgnoresATraceThatIsNone) {
  const std::string trace(kTrace);
  const std::vector<std::string> bad_ones = {
      "",
      "00-1-2-01",
      trace + "-x",
      trace.substr(1),
      "ff" + trace.substr(2),
      "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
      "00-" + std::string(32, '0') + trace.substr(35),
      trace.substr(0, 36) + std::string(16, '0') + "-01",
      "01" + trace.substr(2) + "x",
      "01" + trace.substr(2) + "-" + std::string(200, 'a')};
  for (const std::string& bad : bad_ones) {
    EXPECT_EQ(Read({{"traceparent", bad}}).trace.parent, "") << bad;
  }
  EXPECT_EQ(Read({{"tracestate", std::string(600, 'a')}}).trace.state, "");
}

}  // namespace
}  // namespace bouquet::ivy
