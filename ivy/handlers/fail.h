#pragma once

#include "ivy/api/error.h"
#include "ivy/http/message.h"

namespace bouquet::ivy {

/// The answer of a data route to a request that gets no result, in its dialect; and a line in the
/// log: an error where the fault is ours.
http::Response Fail(const api::Error& error, api::Dialect dialect, const http::Request& request);

}  // namespace bouquet::ivy
