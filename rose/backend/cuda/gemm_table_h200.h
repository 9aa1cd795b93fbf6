#pragma once

#include <string_view>

namespace bouquet::rose::cuda {

/// GemmTable's text for the shapes of Qwen3-0.6B and XLM-R large on an NVIDIA H200, as
/// `./dev gpu-tune` measured it.
extern const std::string_view kH200GemmTable;

}  // namespace bouquet::rose::cuda
