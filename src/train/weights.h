// Weights in and out as safetensors: parameters and running statistics, named like PyTorch's.
#pragma once

#include <filesystem>

#include "train/session.h"

namespace snug::train {

// Parameters and running statistics in logical order (O,I,H,W) and their own types.
void export_weights(const std::filesystem::path& path, const Session& session);

// Every parameter and running statistic must be there with its shape, as F64, F32, F16 or BF16; PyTorch's
// `num_batches_tracked` is passed over. UserError naming the first that is missing, unknown or of another shape, and how many
// more there are; the session is then as it was.
//
// One difference is no refusal: where the file's classifier has another number of classes, and all else is as it should be, the
// classifier stays as the session has it, at its initial values for a new one: so is a model tuned to other data. The result is
// then a sentence that says so, and otherwise empty.
std::string import_weights(const std::filesystem::path& path, Session& session);

}  // namespace snug::train
