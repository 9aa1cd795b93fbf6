#pragma once

#include "base/snapshot.h"
#include "ivy/config.h"
#include "ivy/handlers/served_model.h"
#include "ivy/http/message.h"

namespace bouquet::ivy {

/// GET /info: TEI's fields for the default model, and under "bouquet" all models, identities and
/// the limits in force. Thread: any.
class InfoHandler {
 public:
  InfoHandler(const ModelTable& models, const Snapshot<Config>& config)
      : models_(models), config_(config) {}

  http::Response Show() const;

 private:
  const ModelTable& models_;
  const Snapshot<Config>& config_;
};

}  // namespace bouquet::ivy
