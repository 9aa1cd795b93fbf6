#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "ivy/http/server.h"
#include "ivy/testing/raw_client.h"
#include "ivy/testing/scrape.h"

namespace bouquet::ivy::http {

/// A server with a few small routes, and its clients' side.
class ServerTest : public ::testing::Test {
 protected:
  void Start(ServerOptions options = {}, ApiKeys* keys = nullptr) {
    options.port = 0;
    server_ =
        std::make_unique<Server>(options, Routes(), keys == nullptr ? no_keys_ : *keys, metrics_);
    ASSERT_TRUE(server_->Start().ok());
    port_ = server_->port();
  }

  void StartWith(const ServerLimits& limits) {
    ServerOptions options;
    options.limits = limits;
    Start(options);
  }

  RouteTable Routes() {
    RouteTable routes;
    const auto add = [&](api::Method method, std::string path, api::EndpointKind kind,
                         Handler handler, api::Dialect dialect = api::Dialect::kOpenAi) {
      routes.Add({{method, std::move(path), kind, dialect, ""}, std::move(handler)});
    };
    add(api::Method::kPost, "/echo", api::EndpointKind::kData,
        [](Request& request) { return Echo(request); });
    add(
        api::Method::kPost, "/tei-echo", api::EndpointKind::kData,
        [](Request& request) { return Echo(request); }, api::Dialect::kTei);
    add(api::Method::kPost, "/hold", api::EndpointKind::kData,
        [this](Request& request) { return Hold(request); });
    add(api::Method::kPost, "/throw", api::EndpointKind::kData,
        [](Request& request) -> boost::asio::awaitable<Response> {
          if (request.body != "no") {
            throw std::runtime_error("secret detail");
          }
          co_return Response();
        });
    add(api::Method::kPost, "/large", api::EndpointKind::kData,
        [](Request& request) -> boost::asio::awaitable<Response> {
          Response response;
          response.body.assign(ivy::testing::NumberIn<size_t>(request.body), 'x');
          co_return response;
        });
    add(api::Method::kGet, "/open", api::EndpointKind::kDocument,
        [](Request&) -> boost::asio::awaitable<Response> {
          Response response;
          response.body = "open";
          co_return response;
        });
    add(api::Method::kGet, "/items/*", api::EndpointKind::kCatalog,
        [](Request& request) -> boost::asio::awaitable<Response> {
          Response response;
          response.body = request.rest;
          co_return response;
        });
    return routes;
  }

  static boost::asio::awaitable<Response> Echo(Request& request) {
    Response response;
    response.body = request.body;
    co_return response;
  }

  /// Waits until the test lets it go or the client hangs up.
  boost::asio::awaitable<Response> Hold(Request& request) {
    ++num_held_;
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
    while (!let_go_ && !request.cancelled.stop_requested()) {
      timer.expires_after(std::chrono::milliseconds(1));
      co_await timer.async_wait(boost::asio::use_awaitable);
    }
    num_cancelled_ += request.cancelled.stop_requested() ? 1 : 0;
    --num_held_;
    Response response;
    response.body = "held: " + request.body;
    co_return response;
  }

  double Metric(const std::string& series) {
    return ivy::testing::SeriesValue(metrics_.Render(), series);
  }

  void ExpectServes() {
    EXPECT_EQ(ivy::testing::Ask(port_, ivy::testing::Post("/echo", "next")).body, "next");
  }

  std::atomic<bool> let_go_ = false;
  std::atomic<int> num_held_ = 0;
  std::atomic<int> num_cancelled_ = 0;
  ApiKeys no_keys_;
  Metrics metrics_;
  std::unique_ptr<Server> server_;
  uint16_t port_ = 0;
};

}  // namespace bouquet::ivy::http
