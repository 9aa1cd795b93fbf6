#include "base/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bouquet {
namespace {

using ::testing::HasSubstr;

TEST(ParseAddressTest, ReadsHostsAndSocketsOfTheFileSystem) {
  const auto name = ParseAddress("host-1.example:50051", "--listen");
  ASSERT_TRUE(name.ok());
  EXPECT_EQ(name->host, "host-1.example");
  EXPECT_EQ(name->port, 50051);
  EXPECT_FALSE(name->is_unix());
  EXPECT_EQ(ParseAddress("127.0.0.1:0", "--listen")->port, 0);
  EXPECT_EQ(ParseAddress("[::1]:65535", "--listen")->host, "[::1]");
  const auto path = ParseAddress("unix:/run/a:1.sock", "--listen");
  ASSERT_TRUE(path.ok());
  EXPECT_EQ(path->unix_path, "/run/a:1.sock");
  EXPECT_TRUE(path->is_unix());
}

TEST(ParseAddressTest, RefusesWhatIsNeither) {
  for (const char* text : {"", ":", "host", "host:", ":1", "host:x", "host:1x", "host:-1",
                           "host:65536", "host:99999", "host:4294967297", "::1:80", "unix:"}) {
    const auto address = ParseAddress(text, "--replica");
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(address.status().field(), "--replica");
    EXPECT_THAT(address.status().message(), HasSubstr(std::string("unix:PATH: ") + text));
  }
}

}  // namespace
}  // namespace bouquet
