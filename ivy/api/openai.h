#pragma once

#include "ivy/api/embed_dialect.h"

namespace bouquet::ivy::api {

/// POST /v1/embeddings as OpenAI defines it, with Bouquet's extensions. Over-long inputs are an
/// error unless the body says otherwise.
extern const EmbedDialect kOpenAiEmbeddings;

/// The same shape as text-embeddings-inference serves it: over-long inputs are truncated.
extern const EmbedDialect kTeiOpenAiEmbeddings;

}  // namespace bouquet::ivy::api
