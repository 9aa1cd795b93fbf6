#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <variant>

#include "base/json.h"
#include "cli/command.h"
#include "model/model_folder.h"
#include "text/text_pipeline.h"

namespace bouquet::cli {
namespace {

std::string ModuleText(const model::Module& module) {
  if (const auto* pooling = std::get_if<model::PoolingModule>(&module)) {
    std::string text = "pooling";
    for (const model::PoolingMode mode : pooling->modes) {
      text += fmt::format(" {}", model::PoolingModeName(mode));
    }
    return text;
  }
  if (const auto* dense = std::get_if<model::DenseModule>(&module)) {
    return fmt::format("dense {} -> {}, {}", dense->in_features, dense->out_features,
                       dense->activation);
  }
  return "normalize";
}

int64_t TotalBytes(const std::vector<std::filesystem::path>& files) {
  int64_t total = 0;
  for (const std::filesystem::path& file : files) {
    total += static_cast<int64_t>(std::filesystem::file_size(file));
  }
  return total;
}

ExitCode RunInfo(const std::string& path) {
  const Result<model::ModelFolder> folder = model::ModelFolder::Open(path);
  if (!folder.ok()) {
    return Fail(ExitCode::kModel, folder.status());
  }
  const model::Traits& traits = folder->traits;
  fmt::print("model               {}\n", folder->name);
  fmt::print("architecture        {}{}\n", model::ArchitectureName(traits.architecture),
             traits.causal ? ", causal" : ", bidirectional");
  fmt::print("shape               {} layers, hidden size {}, {} heads ({} kv) of {}, MLP {}\n",
             traits.num_hidden_layers, traits.hidden_size, traits.num_attention_heads,
             traits.num_key_value_heads, traits.head_dim, traits.intermediate_size);
  fmt::print("vocabulary rows     {}\n", traits.vocabulary_rows);
  fmt::print("longest input       {} tokens\n", folder->max_input_tokens);
  std::string pipeline = "transformer";
  for (const model::Module& module : folder->pipeline.modules) {
    pipeline += " -> " + ModuleText(module);
  }
  fmt::print("pipeline            {}\n", pipeline);
  fmt::print("dimensions          {}{}\n", folder->pipeline.width,
             folder->truncate_dim ? fmt::format(" ({} by default)", *folder->truncate_dim) : "");
  for (const auto& [name, prompt] : folder->prompts.by_name) {
    std::string quoted;
    AppendJsonString(prompt, quoted);
    fmt::print("prompt              {}: {}{}\n", name, quoted,
               folder->prompts.default_name == name ? " (default)" : "");
  }
  const auto pipeline_result =
      text::TextPipeline::Load(folder->pipeline.transformer_folder, folder->do_lower_case);
  fmt::print("tokenizer           {}\n",
             pipeline_result.ok() ? fmt::format("{} tokens, {} special tokens around a text",
                                                (*pipeline_result)->tokenizer().vocabulary_size(),
                                                (*pipeline_result)->num_special_tokens())
                                  : "token ids only: " + pipeline_result.status().message());
  fmt::print("weights             {} file(s), {:.1f} MB, {}\n", folder->weight_files.size(),
             static_cast<double>(TotalBytes(folder->weight_files)) / 1e6,
             traits.torch_dtype.empty() ? "dtype not stated" : traits.torch_dtype);
  fmt::print("identity            {}\n", folder->identity);
  return ExitCode::kOk;
}

}  // namespace

RunCommand AddInfoCommand(CLI::App& app) {
  auto path = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("info", "What a model folder is, needs and offers");
  command->add_option("MODEL", *path, "model folder")->required();
  command->footer("Example:\n  bouquet info models/all-MiniLM-L6-v2");
  return [path] { return RunInfo(*path); };
}

}  // namespace bouquet::cli
