#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "ivy/encode/encode_request.h"
#include "ivy/encode/encoder.h"
#include "tests/simulation/event_queue.h"
#include "tests/simulation/gateway_checker.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scenario.h"

namespace bouquet::simulation {

/// Those who ask: each sends a request, sometimes hangs up, waits for the answer or not, pauses and
/// sends the next, until the load ends.
class Clients {
 public:
  /// Everything given must outlive the clients.
  Clients(const Scenario& scenario, EventQueue& events, GatewayChecker& checker,
          boost::asio::io_context& context, ivy::Encoder& encoder, Random random);

  void Begin();
  void End() { ended_ = true; }
  /// One more request that must be answered with rows, for the end of a world.
  void SendLast(std::function<void(bool ok)> answered);

 private:
  struct Client {
    Random random;
  };

  void PlanNext(Client& client);
  void Send(Client& client);
  ivy::EncodeRequest DrawRequest(Random& random);
  std::vector<int32_t> DrawInput(Random& random);
  void Start(int32_t number, ivy::EncodeRequest request, std::function<void(bool ok)> answered);
  boost::asio::awaitable<void> Ask(int32_t number, ivy::EncodeRequest request,
                                   std::function<void(bool ok)> answered);

  const Scenario& scenario_;
  EventQueue& events_;
  GatewayChecker& checker_;
  boost::asio::io_context& context_;
  ivy::Encoder& encoder_;
  Random random_;
  std::vector<Client> clients_;
  int32_t num_requests_ = 0;
  int32_t num_inputs_ = 0;
  bool ended_ = false;
};

}  // namespace bouquet::simulation
