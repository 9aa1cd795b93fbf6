#include "ivy/http/route_table.h"

#include <gtest/gtest.h>

namespace bouquet::ivy::http {
namespace {

using api::EndpointKind;
using api::Method;

Route MakeRoute(Method method, std::string path) {
  return {{method, std::move(path), EndpointKind::kDocument, api::Dialect::kOpenAi, ""}, {}};
}

TEST(RouteTableTest, FindsPathsByMethod) {
  RouteTable table;
  table.Add(MakeRoute(Method::kGet, "/"));
  table.Add(MakeRoute(Method::kPost, "/"));
  table.Add(MakeRoute(Method::kGet, "/v1/models"));
  table.Add(MakeRoute(Method::kGet, "/v1/models/*"));
  EXPECT_EQ(table.Find("GET", "/").route->endpoint.method, Method::kGet);
  EXPECT_EQ(table.Find("HEAD", "/").route->endpoint.method, Method::kGet);
  EXPECT_EQ(table.Find("POST", "/").route->endpoint.method, Method::kPost);
  EXPECT_EQ(table.Find("PUT", "/").allow, "GET, HEAD, POST");
  EXPECT_EQ(table.Find("GET", "/v1/models").route->endpoint.path, "/v1/models");
  EXPECT_EQ(table.Find("GET", "/v1/models/org/name").rest, "org/name");
  EXPECT_EQ(table.Find("GET", "/v1/models/").route, nullptr);
  EXPECT_EQ(table.Find("GET", "/v1").route, nullptr);
  EXPECT_EQ(table.Find("GET", "/v1").allow, "");
}

TEST(RouteTableTest, SharesALabelBetweenPaths) {
  RouteTable table;
  table.Add(MakeRoute(Method::kGet, "/a"), "GET /a");
  table.Add(MakeRoute(Method::kGet, "/b"));
  table.Add(MakeRoute(Method::kGet, "/prefix/a"), "GET /a");
  EXPECT_EQ(table.labels(), (std::vector<std::string>{"GET /a", "GET /b"}));
  EXPECT_EQ(table.Find("GET", "/prefix/a").route->metric_index,
            table.Find("GET", "/a").route->metric_index);
}

TEST(RouteTableTest, TakesThePathOutOfATarget) {
  EXPECT_EQ(PathOf("/embed"), "/embed");
  EXPECT_EQ(PathOf("/embed?a=/b#c"), "/embed");
  EXPECT_EQ(PathOf("http://host:80/embed?a"), "/embed");
  EXPECT_EQ(PathOf("http://host"), "/");
  EXPECT_EQ(PathOf("/a?u=http://x/y"), "/a");
  EXPECT_EQ(PathOf("*"), "*");
}

TEST(RouteTableTest, DecodesPercentEscapes) {
  EXPECT_EQ(PercentDecode("org%2Fname%20x"), "org/name x");
  EXPECT_EQ(PercentDecode("plain"), "plain");
  EXPECT_EQ(PercentDecode("%"), std::nullopt);
  EXPECT_EQ(PercentDecode("%4"), std::nullopt);
  EXPECT_EQ(PercentDecode("%zz"), std::nullopt);
}

}  // namespace
}  // namespace bouquet::ivy::http
