// `bouquet tulip` with an engine that does nothing: a replica for `bouquet ivy` that shows what
// both cost without any computing (bench/split_items.py).
//
//   null_tulip MODEL ADDRESS
#include <iostream>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/metrics.h"
#include "bench/null_model.h"
#include "cli/signals.h"
#include "model/model_folder.h"
#include "testing/null_step_engine.h"
#include "tulip/server.h"

namespace bouquet::bench {
namespace {

Status Serve(const std::string& path, const std::string& address) {
  const cli::Signals signals;
  ASSIGN_OR_RETURN(const model::ModelFolder folder, model::ModelFolder::Open(path));
  const SystemClock clock;
  Metrics metrics;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<tulip::Core> core,
      StartNullCore(folder, std::make_unique<testing::NullStepEngine>(), metrics, clock));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<tulip::Server> server,
      tulip::Server::Start(
          {.listen = {address}, .model_name = folder.name, .max_message_bytes = 16 << 20}, clock));
  server->SetReady(*core);
  signals.Wait();
  server->Drain(std::chrono::seconds(1));
  return {};
}

}  // namespace
}  // namespace bouquet::bench

int main(int argc, char** argv) {
  if (argc != 3 || !bouquet::StartLogging("warning", "text").ok()) {
    std::cerr << "usage: null_tulip MODEL ADDRESS\n";
    return 2;
  }
  const bouquet::Status status = bouquet::bench::Serve(argv[1], argv[2]);
  if (!status.ok()) {
    std::cerr << "null_tulip: " << status.ToString() << '\n';
    return 1;
  }
  return 0;
}
