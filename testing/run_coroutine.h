#pragma once

#include <exception>
#include <optional>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

namespace bouquet::testing {

template <class T>
boost::asio::awaitable<void> KeepResult(boost::asio::awaitable<T> coroutine,
                                        std::optional<T>& result) {
  result.emplace(co_await std::move(coroutine));
}

/// Starts a coroutine on `context`; `result` is filled when it ends, and must live until then.
template <class T>
void StartCoroutine(boost::asio::io_context& context, boost::asio::awaitable<T> coroutine,
                    std::optional<T>& result) {
  boost::asio::co_spawn(context, KeepResult(std::move(coroutine), result),
                        [](const std::exception_ptr& exception) {
                          if (exception != nullptr) {
                            std::rethrow_exception(exception);
                          }
                        });
}

/// Runs one coroutine on the calling thread and returns its result.
template <class T>
T RunCoroutine(boost::asio::awaitable<T> coroutine) {
  boost::asio::io_context context(1);
  std::optional<T> result;
  StartCoroutine(context, std::move(coroutine), result);
  context.run();
  return std::move(result).value();
}

}  // namespace bouquet::testing
