#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/normalizer.h"

namespace bouquet::text {

/// The stage NormalizerStage::Kind::kBert in one pass: clean, space CJK ideographs, decompose and
/// drop nonspacing marks, lower-case, each if the stage says so. Overwrites `out`. `marks` is
/// scratch.
void NormalizeAsBert(const NormalizerStage& stage, std::string_view text,
                     std::vector<unicode::PendingMark>& marks, std::string& out);

}  // namespace bouquet::text
