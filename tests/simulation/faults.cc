#include "tests/simulation/faults.h"

#include <algorithm>

namespace bouquet::simulation {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kShortestPeaceMs = 50;

}  // namespace

Faults::Faults(Machine& machine, const Scenario& scenario, EventQueue& events, Random random)
    : machine_(machine), scenario_(scenario), events_(events), random_(random) {}

void Faults::Begin() {
  if (scenario_.has_faults) {
    PlanNext();
  }
}

void Faults::PlanNext() {
  events_.After(random_.SkewedMs(kShortestPeaceMs, scenario_.longest_peace.count()), [this] {
    if (!ended_) {
      DoSomething();
      PlanNext();
    }
  });
}

void Faults::DoSomething() {
  if (machine_.server() == nullptr) {
    return;  // it is being restarted
  }
  switch (random_.Between(0, 7)) {
    case 0: return machine_.Reset();
    case 1: return machine_.CutOff(random_.SkewedMs(5, 8000));
    case 2: return machine_.Freeze(random_.SkewedMs(5, 8000));
    case 3:
      return machine_.StallNextStep(random_.Chance(0.5) ? random_.SkewedMs(10, 2000)
                                                        : random_.SkewedMs(11'000, 25'000));
    case 4: machine_.Drain(random_.SkewedMs(1, 5000)); return Restart(random_.SkewedMs(1, 3000));
    default:
      machine_.Crash(/*quietly=*/random_.Chance(0.3));
      return Restart(random_.SkewedMs(1, 3000));
  }
}

void Faults::Restart(milliseconds after) {
  events_.After(after, [this] {
    if (machine_.server() != nullptr) {  // still draining
      return Restart(milliseconds(20));
    }
    machine_.Start(DrawModel(), random_.SkewedUs(100, 2'000'000));
  });
}

/// Mostly the same as before; sometimes another version, another model, or one that takes less.
ServedModel Faults::DrawModel() {
  ServedModel model{.max_input_tokens = scenario_.max_input_tokens};
  if (!ended_) {
    if (random_.Chance(0.2)) {
      model.fingerprint = "numerics-2";
    }
    if (random_.Chance(0.2)) {
      model.identity = "another";
    } else if (random_.Chance(0.1)) {
      model.max_input_tokens = std::max(1, scenario_.max_input_tokens / 2);
    }
  }
  return model;
}

void Faults::End() {
  ended_ = true;
  SimulatedServer* server = machine_.server();
  if (server != nullptr) {
    server->StallNextStep(milliseconds(0));  // the one to come
  }
  if (server != nullptr && (!server->model().is_ours() ||
                            server->model().max_input_tokens < scenario_.max_input_tokens)) {
    machine_.Crash(/*quietly=*/false);
    Restart(milliseconds(1));
  }
}

}  // namespace bouquet::simulation
