#pragma once

#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

namespace bouquet::testing {

/// A new context that lives until the process ends: a thread that has posted the last answer may
/// still be inside `post` when run() returns.
inline boost::asio::io_context& LastingContext(int concurrency = 1) {
  static auto* mutex = new std::mutex;
  static auto* contexts = new std::deque<boost::asio::io_context>;
  const std::lock_guard lock(*mutex);
  return contexts->emplace_back(concurrency);
}

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
  thread_local boost::asio::io_context& context = LastingContext();
  std::optional<T> result;
  StartCoroutine(context, std::move(coroutine), result);
  context.restart();
  context.run();
  return std::move(result).value();
}

}  // namespace bouquet::testing
