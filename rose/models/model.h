#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "model/traits.h"
#include "rose/backend/backend.h"
#include "rose/weights/weight_set.h"

namespace bouquet::rose {

/// A network from token ids to hidden states. Says nothing about devices, batching or layouts.
class Model {
 public:
  virtual ~Model() = default;

  /// The last layer's hidden states, [num_tokens, hidden_size] in the compute dtype; valid until
  /// the next call. Call inside Backend::RunStep only.
  virtual TensorView Forward(const StepInputs& inputs, Backend& backend) = 0;
};

/// Takes the network's tensors from `weights`, packs them, and allocates what a step of
/// `max_tokens` needs. `weights` must outlive the model. Error: kNotFound or kInvalidArgument
/// naming tensor and file for one that is missing, of another shape, or unexpected.
Result<std::unique_ptr<Model>> LoadModel(const model::Traits& traits, WeightSet& weights,
                                         int32_t max_tokens, Backend& backend);

}  // namespace bouquet::rose
