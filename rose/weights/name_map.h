#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "model/traits.h"

namespace bouquet::rose {

/// What stands in front of every tensor name of a file: "" or the attribute under which a larger
/// class kept the network ("bert.", "model.", …). Found by the word embedding, which every family
/// has: `has(name)` says whether the files hold a tensor. nullopt when no known prefix fits.
std::optional<std::string> FindNamePrefix(model::Architecture architecture,
                                          const std::function<bool(std::string_view)>& has);

/// The word embedding's name without prefix.
std::string_view AnchorName(model::Architecture architecture);

/// Why a tensor that the network does not use may be in its files, or nullopt when it may not.
/// `name` is without prefix. These are left over from training or can be computed; anything else
/// unexpected means that the file holds another network than config.json says.
std::optional<std::string_view> HarmlessReason(model::Architecture architecture,
                                               std::string_view name);

}  // namespace bouquet::rose
