// The layers of sequence models: values have a row for each token of each example.
#include <cmath>

#include "base/error.h"
#include "frontend/graph_builder.h"
#include "ops/ops.h"

namespace snug::frontend {

namespace {

constexpr Initializer kOnes{.kind = Initializer::Kind::constant, .amount = 1};
constexpr Initializer kZeros{.kind = Initializer::Kind::constant, .amount = 0};

std::int64_t kv_heads_of(const AttentionOptions& options) { return options.kv_heads == 0 ? options.heads : options.kv_heads; }

// Columns of one head in [.., (heads + 2 kv_heads) * size].
std::int64_t head_size(const std::string& layer, const Shape& qkv, const AttentionOptions& options) {
  const std::int64_t parts = options.heads + 2 * kv_heads_of(options);
  if (qkv.rank() != 2) throw_user_error("layer '{}': the input is {}; attention takes [tokens,features]", layer, to_string(qkv));
  if (options.heads < 1 || options.kv_heads < 0 || qkv[1] % parts != 0) {
    throw_user_error("layer '{}': {} columns do not split into {} heads of queries and {} of keys and values each", layer, qkv[1],
                     options.heads, kv_heads_of(options));
  }
  return qkv[1] / parts;
}

}  // namespace

ValueId GraphBuilder::tokens(std::int64_t length) {
  if (length < 1) throw_user_error("examples of {} tokens are not possible; use at least 1", length);
  return input("tokens", {.dtype = DType::i32, .shape = {batch() * length}});
}

ValueId GraphBuilder::embedding(const std::string& name, ValueId tokens, ValueId table) {
  return emit(name, ops::embedding, {tokens, table}).front();
}

ValueId GraphBuilder::add_positions(const std::string& name, ValueId x, ValueId table) {
  Attributes attributes;
  set_rows_per_example(attributes, rows_of_each_example(name, type_of(x)));
  return emit(name, ops::add_positions, {x, table}, attributes).front();
}

ValueId GraphBuilder::layer_norm(const std::string& name, ValueId x, double epsilon) {
  const Type row{.dtype = DType::f32, .shape = {type_of(x).shape.dims().back()}};
  const ValueId weight = parameter(name + ".weight", row, kOnes);
  const ValueId bias = parameter(name + ".bias", row, kZeros);
  return emit(name, ops::layer_norm, {x, weight, bias}, {{"epsilon", epsilon}}).front();
}

ValueId GraphBuilder::rms_norm(const std::string& name, ValueId x, double epsilon) {
  const Type row{.dtype = DType::f32, .shape = {type_of(x).shape.dims().back()}};
  return emit(name, ops::rms_norm, {x, parameter(name + ".weight", row, kOnes)}, {{"epsilon", epsilon}}).front();
}

ValueId GraphBuilder::gelu(const std::string& name, ValueId x, bool by_tanh) {
  return emit(name, ops::gelu, {x}, {{"tanh", std::int64_t{by_tanh ? 1 : 0}}}).front();
}

ValueId GraphBuilder::silu(const std::string& name, ValueId x) { return emit(name, ops::silu, {x}).front(); }

ValueId GraphBuilder::gated_linear_unit(const std::string& name, ValueId x, Gate gate) {
  return emit(name, ops::gated_linear_unit, {x}, {{"activation", static_cast<std::int64_t>(gate)}}).front();
}

ValueId GraphBuilder::rotary(const std::string& name, ValueId qkv, const AttentionOptions& options, double base) {
  Attributes attributes{{"heads", options.heads + kv_heads_of(options)},
                        {"head_size", head_size(name, type_of(qkv).shape, options)},
                        {"base", base},
                        {"inverse", std::int64_t{0}}};
  set_rows_per_example(attributes, rows_of_each_example(name, type_of(qkv)));
  return emit(name, ops::rotary, {qkv}, attributes).front();
}

ValueId GraphBuilder::attention(const std::string& name, ValueId qkv, const AttentionOptions& options) {
  const auto size = static_cast<double>(head_size(name, type_of(qkv).shape, options));
  Attributes attributes{
      {"heads", options.heads},       {"kv_heads", kv_heads_of(options)}, {"causal", std::int64_t{options.causal ? 1 : 0}},
      {"scale", 1 / std::sqrt(size)}, {"dropout", options.dropout},       {"key", options.dropout > 0 ? ++random_keys_ : 0}};
  set_rows_per_example(attributes, rows_of_each_example(name, type_of(qkv)));
  return emit(name, ops::attention, {qkv, read(program_.scalars)}, attributes).front();
}

ValueId GraphBuilder::cross_attention(const std::string& name, ValueId q, ValueId kv, const AttentionOptions& options) {
  const Shape& queries = type_of(q).shape;
  if (queries.rank() != 2 || options.heads < 1 || queries[1] % options.heads != 0)
    throw_user_error("layer '{}': queries {} do not split into {} heads", name, to_string(queries), options.heads);
  const std::int64_t size = queries[1] / options.heads;
  Attributes attributes{{"heads", options.heads},
                        {"kv_heads", kv_heads_of(options)},
                        {"scale", 1 / std::sqrt(static_cast<double>(size))},
                        {"dropout", options.dropout},
                        {"key", options.dropout > 0 ? ++random_keys_ : 0},
                        {"key_rows_per_example", rows_of_each_example(name, type_of(kv))}};
  set_rows_per_example(attributes, rows_of_each_example(name, type_of(q)));
  return emit(name, ops::cross_attention, {q, kv, read(program_.scalars)}, attributes).front();
}

ValueId GraphBuilder::weigh_taps(const std::string& layer, ValueId taps, const SequenceConvOptions& options) {
  const ValueId weights = emit(layer + ".softmax", ops::softmax, {taps}).front();
  return options.drop_connect != 0 ? dropout(layer + ".drop_connect", weights, options.drop_connect) : weights;
}

Attributes GraphBuilder::sequence_conv_attributes(const std::string& layer, ValueId x, const SequenceConvOptions& options) const {
  const Shape& shape = type_of(x).shape;
  if (shape.rank() != 2)
    throw_user_error("layer '{}': the input is {}; a convolution of sequences takes [tokens,features]", layer, to_string(shape));
  if (options.heads < 1 || shape[1] % options.heads != 0)
    throw_user_error("layer '{}': {} columns do not split into {} heads", layer, shape[1], options.heads);
  if (options.kernel < 1 || options.kernel > Shape::kMaxElements / (options.heads + 1))
    throw_user_error("layer '{}': kernels of {} taps are not possible", layer, options.kernel);
  Attributes attributes{{"heads", options.heads}, {"kernel", options.kernel}, {"causal", std::int64_t{options.causal ? 1 : 0}}};
  set_rows_per_example(attributes, rows_of_each_example(layer, type_of(x)));
  return attributes;
}

// The weight begins as Glorot and Bengio's uniform distribution has it for one input and `heads` output channels.
ValueId GraphBuilder::lightweight_conv(const std::string& name, ValueId x, const SequenceConvOptions& options) {
  Attributes attributes = sequence_conv_attributes(name, x, options);
  const double bound = std::sqrt(6 / static_cast<double>((options.heads + 1) * options.kernel));
  const ValueId taps = parameter(name + ".weight", {.dtype = DType::f32, .shape = {options.heads, options.kernel}},
                                 {.kind = Initializer::Kind::uniform, .amount = bound});
  return emit(name, ops::lightweight_conv, {x, weigh_taps(name, taps, options)}, std::move(attributes)).front();
}

ValueId GraphBuilder::dynamic_conv(const std::string& name, ValueId x, const SequenceConvOptions& options) {
  Attributes attributes = sequence_conv_attributes(name, x, options);
  const ValueId flat = linear(name + ".weight_linear", x, options.heads * options.kernel, {.bias = false});
  const Shape of_rows = type_of(flat).shape;
  const ValueId taps = reshape(name + ".taps", flat, {of_rows[0] * options.heads, options.kernel});
  const ValueId weights = reshape(name + ".weights", weigh_taps(name, taps, options), of_rows);
  return emit(name, ops::dynamic_conv, {x, weights}, std::move(attributes)).front();
}

// The gate is the first half of linear1, where that of PyTorch's glu is the second.
ValueId GraphBuilder::dynamic_conv_block(const std::string& name, ValueId x, const SequenceConvOptions& options) {
  const std::int64_t columns = type_of(x).shape.dims().back();
  x = gated_linear_unit(name + ".glu", linear(name + ".linear1", x, 2 * columns), Gate::sigmoid);
  return linear(name + ".linear2", dynamic_conv(name + ".conv", x, options), columns);
}

void GraphBuilder::linear_cross_entropy(const std::string& name, ValueId x, ValueId weight, double label_smoothing) {
  const ValueId labels = input("labels", {.dtype = DType::i32, .shape = {type_of(x).shape[0]}});
  Attributes attributes{{"label_smoothing", label_smoothing}};
  set_rows_per_example(attributes, rows_of_each_example(name, type_of(x)));
  loss(name, ops::linear_cross_entropy, {x, weight, labels, read(program_.scalars)}, std::move(attributes));
}

}  // namespace snug::frontend
