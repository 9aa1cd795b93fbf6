#include "bench/load/client_session.h"

#include <exception>
#include <optional>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

namespace bouquet::bench {

namespace asio = boost::asio;

namespace {

// A completion handler's value must have a default, which Result has not.
asio::awaitable<void> Keep(asio::awaitable<Result<std::string>> conversation,
                           std::optional<Result<std::string>>& outcome) {
  Result<std::string> result = co_await std::move(conversation);
  outcome.emplace(std::move(result));
}

}  // namespace

Result<std::string> RunSession(
    const std::vector<client::ClientOptions>& servers,
    const std::function<asio::awaitable<Result<std::string>>(Clients&)>& conversation) {
  asio::io_context context(1);
  Clients clients;
  for (const client::ClientOptions& options : servers) {
    ASSIGN_OR_RETURN(auto made, client::CreateEmbedClient(context.get_executor(), options));
    clients.push_back(std::move(made));
  }
  std::optional<Result<std::string>> outcome;
  asio::co_spawn(context, Keep(conversation(clients), outcome),
                 [&outcome](const std::exception_ptr& error) {
                   if (error != nullptr) {
                     outcome.emplace(Internal("a client session ended unexpectedly"));
                   }
                 });
  context.run();
  return *std::move(outcome);
}

}  // namespace bouquet::bench
