#pragma once

#include <vector>

#include "tests/simulation/event_queue.h"
#include "tests/simulation/machine.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scenario.h"

namespace bouquet::simulation {

/// What goes wrong with one machine while there is load; and that it is put right then.
class Faults {
 public:
  Faults(Machine& machine, const Scenario& scenario, EventQueue& events, Random random);

  /// From now on something goes wrong now and then.
  void Begin();
  /// Nothing more goes wrong, and what is wrong with the process ends: the right model will serve.
  void End();

 private:
  void PlanNext();
  void DoSomething();
  void Restart(std::chrono::milliseconds after);
  ServedModel DrawModel();

  Machine& machine_;
  const Scenario& scenario_;
  EventQueue& events_;
  Random random_;
  bool ended_ = false;
};

}  // namespace bouquet::simulation
