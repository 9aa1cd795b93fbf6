#pragma once

#include "base/status.h"
#include "ivy/api/request.h"
#include "ivy/config.h"
#include "ivy/encode/encode_request.h"
#include "ivy/encode/text_request.h"
#include "model/model_folder.h"

namespace bouquet::ivy {

/// Turns what a body said into what the encoder is asked: absent fields get the model's or the
/// flags' value, and values are checked against the model. Moves the inputs. Class, deadline and
/// cancellation are left to the caller. Error: kInvalidArgument with the field's path.
Result<EncodeRequest> ResolveRequest(api::Request request, const model::ModelFolder& folder,
                                     const Config& config);

/// The same for the routes that tokenize and decode.
Result<TextRequest> ResolveTextRequest(api::Request request, const model::ModelFolder& folder,
                                       const Config& config);

/// The longest input: the model's maximum, or the flag where that is lower.
int32_t MaxInputTokens(const model::ModelFolder& folder, const Config& config);

}  // namespace bouquet::ivy
