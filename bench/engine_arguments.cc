#include "bench/engine_arguments.h"

#include <charconv>
#include <string>
#include <string_view>
#include <utility>

namespace bouquet::bench {
namespace {

Status ReadNumber(std::string_view value, int32_t* out) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *out);
  return error == std::errc() && end == value.data() + value.size()
             ? Status()
             : InvalidArgument("a number is expected", std::string(value));
}

Status ReadArgument(std::string_view argument, rose::EngineOptions* options) {
  const size_t end = argument.find('=');
  const std::string_view name = argument.substr(0, end);
  const std::string_view value =
      end == std::string_view::npos ? std::string_view() : argument.substr(end + 1);
  if (name == "threads") {
    return ReadNumber(value, &options->threads);
  }
  if (name == "max_step_tokens") {
    return ReadNumber(value, &options->max_step_tokens);
  }
  for (const auto& [known, field] :
       {std::pair("dtype", &options->dtype), std::pair("device", &options->device),
        std::pair("graphs", &options->graphs), std::pair("attention", &options->attention)}) {
    if (name == known) {
      *field = value;
      return {};
    }
  }
  return InvalidArgument("no such option", std::string(argument));
}

}  // namespace

Status ReadEngineArguments(std::span<char* const> arguments, rose::EngineOptions* options) {
  for (const char* argument : arguments) {
    RETURN_IF_ERROR(ReadArgument(argument, options));
  }
  return {};
}

}  // namespace bouquet::bench
