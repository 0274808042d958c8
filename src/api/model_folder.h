// A trained language model as a folder that Hugging Face's transformers loads: config.json, model.safetensors, and the tokenizer
// where there is one.
#pragma once

#include <filesystem>
#include <string>

#include "data/dataset.h"
#include "settings/recipe.h"
#include "train/session.h"

namespace snug {

// Whether what is written there is a folder: it is one, or its name ends with a slash.
bool names_folder(const std::filesystem::path& path);

// Makes the folder where it is missing. UserError for models of images, which have no such folder. A tokenizer.json goes with it
// where the run's tokenizer was read from a file and is still there; otherwise the result says, in a sentence, why there is none.
// Empty: there is one, or tokens are bytes.
std::string export_folder(const std::filesystem::path& folder, const train::Session& session, const settings::Recipe& recipe,
                          const data::Description& trained);

}  // namespace snug
