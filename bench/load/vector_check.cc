#include "bench/load/vector_check.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "base/json.h"
#include "base/json_writer.h"
#include "bench/load/client_session.h"

namespace bouquet::bench {
namespace {

namespace asio = boost::asio;

Status AnswerFailed(const CheckCase& item, std::string_view who, const Status& status) {
  return Status(status.code(), fmt::format("the check of vectors failed: {} gave no row for {}: {}",
                                           who, item.name, status.message()));
}

/// {"worst": …, "worst_index": …}; an infinite distance is null.
asio::awaitable<Result<std::string>> Compare(Clients& clients,
                                             const std::vector<client::ClientOptions>& servers,
                                             const std::vector<CheckCase>& cases,
                                             const ReferenceRows* rows) {
  double worst = -1;
  size_t worst_index = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::vector<client::EmbedInput> inputs{cases[i].input};
    const client::PreparedRequest request = client::PrepareRequest(servers[0], inputs);
    const client::EmbedReply reply = co_await clients[0]->Embed(request);
    if (!reply.status.ok()) {
      co_return AnswerFailed(cases[i], "the server", reply.status);
    }
    double distance = 0;
    if (rows != nullptr) {
      distance = CosineDistance(reply.rows.values, rows->Row(i));
    } else {
      const client::PreparedRequest same = client::PrepareRequest(servers[1], inputs);
      const client::EmbedReply right = co_await clients[1]->Embed(same);
      if (!right.status.ok()) {
        co_return AnswerFailed(cases[i], "the reference", right.status);
      }
      distance = CosineDistance(reply.rows.values, right.rows.values);
    }
    if (distance > worst) {
      worst = distance;
      worst_index = i;
    }
  }
  JsonWriter json;
  json.BeginObject().Field("worst", worst).Field("worst_index", worst_index).EndObject();
  co_return std::move(json).Take();
}

}  // namespace

Result<CheckOutcome> CheckVectors(const client::ClientOptions& server,
                                  const std::vector<CheckCase>& cases, const ReferenceRows* rows,
                                  const client::ClientOptions* reference_server,
                                  const ClientProcessHooks& hooks) {
  CHECK(!cases.empty());
  CHECK((rows == nullptr) != (reference_server == nullptr));
  CHECK(rows == nullptr || rows->num_rows() >= cases.size());
  std::vector<client::ClientOptions> servers{server};
  if (reference_server != nullptr) {
    servers.push_back(*reference_server);
  }
  const auto conversation = [&](Clients& clients) {
    return Compare(clients, servers, cases, rows);
  };
  ASSIGN_OR_RETURN(const std::vector<std::string> answers,
                   RunClientProcesses(
                       1,
                       [&](size_t /*index*/, ParentChannel& /*parent*/) {
                         return RunSession(servers, conversation);
                       },
                       hooks));
  ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(answers.front(), "check"));
  ASSIGN_OR_RETURN(const JsonObject object, JsonObject::From(document.root(), "check"));
  CheckOutcome outcome;
  outcome.num_inputs = cases.size();
  ASSIGN_OR_RETURN(const std::optional<double> worst, object.Number("worst"));
  outcome.worst = worst.value_or(std::numeric_limits<double>::infinity());
  ASSIGN_OR_RETURN(
      const int64_t index,
      object.RequiredInteger("worst_index", 0, static_cast<int64_t>(cases.size()) - 1));
  outcome.worst_input = cases[static_cast<size_t>(index)].name;
  return outcome;
}

}  // namespace bouquet::bench
