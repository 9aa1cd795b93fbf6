#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace bouquet::text {

/// Spells an expression of the reference's engine (Oniguruma 6.9.10, Unicode 16) for the one here,
/// which may be of an older Unicode: classes by name (\p{L}, \w, \d, \s and their opposites) become
/// the ranges that the reference's have. What would still depend on the version, or can run code
/// (\b, \X, POSIX brackets, callouts, flags other than i and m), is refused by name. Mistakes in
/// the expression are left for the engine to find. Error: kUnimplemented, kInvalidArgument.
Result<std::string> TranslateRegex(std::string_view expression);

}  // namespace bouquet::text
