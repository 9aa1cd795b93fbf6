// Ivy with an engine that does nothing: every input gets the same row at once. Shows the gateway's
// own time per request (bench/service_items.py).
//
//   null_service MODEL PORT
#include <charconv>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/metrics.h"
#include "ivy/gateway.h"
#include "model/model_folder.h"

namespace bouquet::bench {
namespace {

boost::asio::awaitable<Result<ivy::EncodedRows>> SameRow(uint32_t dimensions,
                                                         ivy::EncodeRequest request) {
  ivy::EncodedRows rows;
  rows.dimensions = dimensions;
  rows.values.assign(dimensions * request.inputs.size(), 0.05103104F);  // 1 / sqrt(384)
  rows.token_counts.assign(request.inputs.size(), 8);
  rows.truncated.assign(request.inputs.size(), 0);
  rows.statuses.assign(request.inputs.size(), Status());
  co_return rows;
}

Status Serve(const std::string& path, int32_t port) {
  ASSIGN_OR_RETURN(model::ModelFolder folder, model::ModelFolder::Open(path));
  ivy::ServedModel served;
  served.name = folder.name;
  const auto dimensions = static_cast<uint32_t>(folder.pipeline.width);
  served.folder = std::move(folder);
  served.encode = [dimensions](ivy::EncodeRequest request) {
    return SameRow(dimensions, std::move(request));
  };
  ivy::Config config;
  config.port = port;
  const std::string name = served.name;
  std::vector<ivy::ServedModel> models;
  models.push_back(std::move(served));
  Metrics metrics;
  ASSIGN_OR_RETURN(const std::unique_ptr<ivy::Gateway> gateway,
                   ivy::Gateway::Create(config, std::move(models), metrics));
  RETURN_IF_ERROR(gateway->Start());
  gateway->SetReady(name, {});
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  int signal = 0;
  sigwait(&signals, &signal);
  gateway->Drain();
  gateway->Stop();
  return {};
}

}  // namespace
}  // namespace bouquet::bench

int main(int argc, char** argv) {
  const std::string text = argc == 3 ? argv[2] : "";
  int32_t port = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), port).ec != std::errc()) {
    std::cerr << "usage: null_service MODEL PORT\n";
    return 2;
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before any thread starts: Serve waits for it
  const bouquet::Status status = bouquet::bench::Serve(argv[1], port);
  if (!status.ok()) {
    std::cerr << "null_service: " << status.ToString() << '\n';
    return 1;
  }
  return 0;
}
