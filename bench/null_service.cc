// `bouquet serve` with an engine that does nothing, to show what all the rest costs.
//
//   null_service MODEL PORT         the gateway alone: every input gets the same row at once
//   null_service MODEL PORT whole   tokenizer and Tulip's queue as well (null_model.h)
#include <charconv>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "bench/null_model.h"
#include "cli/signals.h"
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

Result<ivy::ServedModel> RowsAtOnce(const std::string& path) {
  ivy::ServedModel served;
  ASSIGN_OR_RETURN(served.folder, model::ModelFolder::Open(path));
  served.name = served.folder.name;
  served.encode = [dimensions = static_cast<uint32_t>(served.folder.pipeline.width)](
                      ivy::EncodeRequest request) {
    return SameRow(dimensions, std::move(request));
  };
  return served;
}

ivy::ServedModel Whole(NullModel& model) {
  ivy::ServedModel served;
  served.folder = model.folder();
  served.name = served.folder.name;
  served.encode = [&model](ivy::EncodeRequest request) {
    return model.encoder().Encode(std::move(request));
  };
  return served;
}

Status Serve(const std::string& path, int32_t port, bool whole) {
  const cli::Signals signals;
  const SystemClock clock;
  Metrics metrics;
  std::unique_ptr<NullModel> model;
  ivy::ServedModel served;
  if (whole) {
    ASSIGN_OR_RETURN(model, NullModel::Load(path, {}, metrics, clock));
    served = Whole(*model);
  } else {
    ASSIGN_OR_RETURN(served, RowsAtOnce(path));
  }
  ivy::Config config;
  config.port = port;
  const std::string name = served.name;
  std::vector<ivy::ServedModel> models;
  models.push_back(std::move(served));
  ASSIGN_OR_RETURN(const std::unique_ptr<ivy::Gateway> gateway,
                   ivy::Gateway::Create(config, std::move(models), metrics));
  RETURN_IF_ERROR(gateway->Start());
  gateway->SetReady(name, {});
  signals.Wait();
  gateway->Drain();
  gateway->Stop();
  return {};
}

}  // namespace
}  // namespace bouquet::bench

int main(int argc, char** argv) {
  const bool whole = argc == 4 && std::string_view(argv[3]) == "whole";
  const std::string text = argc == 3 || whole ? argv[2] : "";
  int32_t port = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), port).ec != std::errc() ||
      !bouquet::StartLogging("warning", "text").ok()) {
    std::cerr << "usage: null_service MODEL PORT [whole]\n";
    return 2;
  }
  const bouquet::Status status = bouquet::bench::Serve(argv[1], port, whole);
  if (!status.ok()) {
    std::cerr << "null_service: " << status.ToString() << '\n';
    return 1;
  }
  return 0;
}
