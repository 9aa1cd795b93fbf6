#pragma once

#include <string>
#include <string_view>

#include "text/normalizer.h"

namespace bouquet::text {

/// The stage NormalizerStage::Kind::kBert in one pass: clean, space CJK ideographs, decompose and
/// drop nonspacing marks, lower-case, each if the stage says so. Overwrites `out`. Sources:
/// SourceMap or NoSources.
template <class Sources>
void NormalizeAsBert(const NormalizerStage& stage, std::string_view text,
                     unicode::NormalizationScratch& scratch, Sources sources, std::string& out);

}  // namespace bouquet::text
