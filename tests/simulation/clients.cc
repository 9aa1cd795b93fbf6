#include "tests/simulation/clients.h"

#include <exception>
#include <utility>

#include <boost/asio/co_spawn.hpp>

#include "base/check.h"
#include "tests/simulation/input_marks.h"

namespace bouquet::simulation {

Clients::Clients(const Scenario& scenario, EventQueue& events, GatewayChecker& checker,
                 boost::asio::io_context& context, ivy::Encoder& encoder, Random random)
    : scenario_(scenario),
      events_(events),
      checker_(checker),
      context_(context),
      encoder_(encoder),
      random_(random) {
  for (int32_t i = 0; i < scenario.num_clients; ++i) {
    clients_.push_back({random_.Fork()});
  }
}

void Clients::Begin() {
  for (Client& client : clients_) {
    PlanNext(client);
  }
}

void Clients::PlanNext(Client& client) {
  events_.After(
      std::chrono::microseconds(client.random.Between(0, scenario_.longest_pause.count())),
      [this, &client] {
        if (!ended_) {
          Send(client);
        }
      });
}

void Clients::Send(Client& client) {
  const int32_t number = num_requests_++;
  ivy::EncodeRequest request = DrawRequest(client.random);
  std::stop_source cancelled = request.cancelled;
  const bool hangs_up = client.random.Chance(scenario_.hang_up_share);
  const auto patience = client.random.SkewedUs(1, 2'000'000);
  const bool waits = client.random.Chance(0.7);
  Start(number, std::move(request), [this, &client, waits](bool /*ok*/) {
    if (waits) {
      PlanNext(client);
    }
  });
  if (hangs_up) {
    events_.After(patience, [this, number, cancelled]() mutable {
      checker_.OnHangUp(number);
      cancelled.request_stop();
    });
  }
  if (!waits) {
    PlanNext(client);
  }
}

void Clients::Start(int32_t number, ivy::EncodeRequest request,
                    std::function<void(bool ok)> answered) {
  checker_.OnRequest(number, request);
  boost::asio::co_spawn(context_, Ask(number, std::move(request), std::move(answered)),
                        [](const std::exception_ptr& exception) { CHECK(exception == nullptr); });
}

boost::asio::awaitable<void> Clients::Ask(int32_t number, ivy::EncodeRequest request,
                                          std::function<void(bool ok)> answered) {
  const Result<ivy::EncodedRows> answer = co_await encoder_.Encode(std::move(request));
  checker_.OnAnswer(number, answer);
  answered(answer.ok());
}

void Clients::SendLast(std::function<void(bool ok)> answered) {
  ivy::EncodeRequest request;
  std::vector<int32_t> ids = DrawInput(random_);
  ids[kKindMark] = kOrdinary;
  request.inputs.emplace_back(std::move(ids));
  Start(num_requests_++, std::move(request), std::move(answered));
}

ivy::EncodeRequest Clients::DrawRequest(Random& random) {
  ivy::EncodeRequest request;
  for (int64_t left = random.Skewed(1, scenario_.most_inputs); left > 0; --left) {
    request.inputs.emplace_back(DrawInput(random));
  }
  request.output.dimensions = static_cast<uint32_t>(random.Between(0, Scenario::kWidth));
  request.traffic_class = random.Chance(scenario_.bulk_share) ? model::TrafficClass::kBulk
                                                              : model::TrafficClass::kInteractive;
  if (random.Chance(scenario_.deadline_share)) {
    request.deadline =
        Deadline::After(events_.Now(), random.SkewedMs(1, scenario_.longest_deadline.count()));
  }
  return request;
}

std::vector<int32_t> Clients::DrawInput(Random& random) {
  std::vector<int32_t> ids(
      static_cast<size_t>(random.Skewed(kMinInputTokens, scenario_.max_input_tokens)));
  for (int32_t& id : ids) {
    id = static_cast<int32_t>(random.Between(1000, 2000));
  }
  ids[kInputMark] = ++num_inputs_;
  ids[kCallMark] = 0;
  ids[kKindMark] = kOrdinary;
  if (random.Chance(scenario_.poison_share)) {
    ids[kKindMark] = kPoisoned;
  } else if (random.Chance(scenario_.not_finite_share)) {
    ids[kKindMark] = kNotFinite;
  }
  return ids;
}

}  // namespace bouquet::simulation
