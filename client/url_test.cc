#include "client/url.h"

#include <gtest/gtest.h>

namespace bouquet::client {
namespace {

TEST(UrlTest, ReadsSchemeHostPortAndPrefix) {
  const Result<Url> url = ParseUrl("http://localhost:8080/prefix/v1/");
  ASSERT_TRUE(url.ok()) << url.status().ToString();
  EXPECT_EQ(url->scheme, Url::Scheme::kHttp);
  EXPECT_EQ(url->host, "localhost");
  EXPECT_EQ(url->port, "8080");
  EXPECT_EQ(url->path, "/prefix/v1");
  EXPECT_EQ(url->Authority(), "localhost:8080");
}

TEST(UrlTest, TakesHostAndPortAloneForHttpAndEightyWhereNoPortIs) {
  ASSERT_TRUE(ParseUrl("127.0.0.1:9000").ok());
  EXPECT_EQ(ParseUrl("127.0.0.1:9000")->port, "9000");
  EXPECT_EQ(ParseUrl("http://host")->port, "80");
}

TEST(UrlTest, ReadsGrpcAndAddressesInBrackets) {
  const Result<Url> url = ParseUrl("grpc://[::1]:9090");
  ASSERT_TRUE(url.ok()) << url.status().ToString();
  EXPECT_EQ(url->scheme, Url::Scheme::kGrpc);
  EXPECT_EQ(url->host, "::1");
  EXPECT_EQ(url->Authority(), "[::1]:9090");
}

TEST(UrlTest, RefusesWhatItCannotConnectTo) {
  for (const char* text :
       {"", "http://", "https://host:1", "ftp://host:1", "host:0", "host:70000", "host:80x",
        "http://[::1:80", "http://a b:80", "http://user@host:80", "grpc://host",
        "grpc://host:1/path", ":80", "host:1?q", "host:1\r\nX: y"}) {
    const Result<Url> url = ParseUrl(text);
    EXPECT_FALSE(url.ok()) << text;
    EXPECT_EQ(url.code(), StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace bouquet::client
