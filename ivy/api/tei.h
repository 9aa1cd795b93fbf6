#pragma once

#include "ivy/api/embed_dialect.h"

namespace bouquet::ivy::api {

/// POST /embed as text-embeddings-inference defines it: bare [[f32]], normalised and truncated
/// unless the body says otherwise. `model` is Bouquet's extension.
extern const EmbedDialect kTeiEmbed;

}  // namespace bouquet::ivy::api
