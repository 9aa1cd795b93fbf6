#pragma once

#include <cstdint>

#include "ivy/handlers/served_model.h"
#include "ivy/http/message.h"

namespace bouquet::ivy {

/// GET /v1/models and /v1/models/{id}, in OpenAI's shape. `created` is the Unix time at which the
/// gateway started. Thread: any.
class ModelsHandler {
 public:
  ModelsHandler(const ModelTable& models, int64_t created) : models_(models), created_(created) {}

  http::Response List() const;
  http::Response One(const http::Request& request) const;

 private:
  const ModelTable& models_;
  const int64_t created_;
};

}  // namespace bouquet::ivy
