// How others publish the parameters of a model, where that is not one tensor of the same name, shape and order for each: Hugging
// Face's transformers names GPT-2's and Llama's so.
//
//   here                                           published
//   h.0.attn.c_proj.weight [768,768]               transformer.h.0.attn.c_proj.weight, transposed
//   model.layers.0.self_attn.qkv_proj.weight       model.layers.0.self_attn.q_proj.weight: rows [0, 576)
//     [960,576]                                    model.layers.0.self_attn.k_proj.weight: rows [576, 768)
//                                                  model.layers.0.self_attn.v_proj.weight: rows [768, 960)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"
#include "ir/program.h"

namespace snug::io {

// A tensor of a file, and the rows of a state that it is.
struct PublishedTensor {
  TensorInfo info;
  StateId state;
  std::size_t first_byte = 0;  // of the state in logical order
  bool is_transposed = false;  // the file has [columns, rows]
};

// Which rows of a parameter a tensor is. Of a weight of queries, keys and values, the queries are as many rows as there are
// columns, and half of the others are keys.
enum class PublishedRows : std::uint8_t { all, queries, keys, values, first_half, second_half };

struct PublishedPart {
  std::string_view ending;  // of the tensor's name, in the place of the rule's
  PublishedRows rows = PublishedRows::all;
  bool is_transposed = false;
};

// How parameters are published whose names end so.
struct PublishedRule {
  std::string_view ending;
  std::span<const PublishedPart> parts;
};

struct PublishedFamily {
  std::string_view convention;                // what the metadata of our files calls it
  std::span<const std::string_view> has;      // parameters that every model of the family has; the first is the table of tokens
  std::string_view prefix;                    // what published names begin with beside the parameters' names
  std::string_view inner_prefix;              // what they begin with, but not in a file of the model without its classifier
  std::span<const PublishedRule> rules;       // other parameters are one tensor each
  std::span<const std::string_view> buffers;  // endings of what older files have beside the parameters, such as masks
  std::string_view classifier;                // a tensor that files may have although it is the table of tokens
};

// By the names of the program's parameters; nullptr: each parameter is a tensor of its own name, shape and order.
const PublishedFamily* find_published_family(const Program& program);

// The tensors that make up these states, in their order. What belongs to a parameter, such as its momentum, is published by that
// parameter's name.
std::vector<PublishedTensor> published_tensors(const PublishedFamily* family, const Program& program,
                                               std::span<const StateId> states);

}  // namespace snug::io
