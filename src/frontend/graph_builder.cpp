#include "frontend/graph_builder.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace snug::frontend {

namespace {

// Backward, the optimizer and workspaces name their values after the layer; these names must stay within the text form's 200.
constexpr std::size_t kLongestLayerName = 150;
constexpr std::int64_t kMostAlongADimension = std::numeric_limits<std::int32_t>::max();

std::vector<std::int64_t> both(std::int64_t value) { return {value, value}; }

// What `build` returns; its UserErrors name the layer.
template <typename Build>
auto in_layer(const std::string& name, Build build) {
  try {
    return build();
  } catch (const UserError& error) {
    throw_user_error("layer '{}': {}", name, error.what());
  }
}

// Kernels count along a dimension in 32 bits, and so do the libraries that they call: an overflow there gives a wrong result or a
// division by zero.
void require_countable(const Shape& shape) {
  for (const std::int64_t dim : shape.dims()) {
    if (dim > kMostAlongADimension)
      throw_user_error("a dimension of {} is more than {}, the most that kernels can count", to_string(shape),
                       kMostAlongADimension);
  }
}

void require_countable(const Attributes& attributes) {
  const auto require = [](std::string_view name, std::int64_t value) {
    if (value > kMostAlongADimension || value < -kMostAlongADimension)
      throw_user_error("{} {} is more than {}, the most that kernels can count", name, value, kMostAlongADimension);
  };
  for (const auto& [name, value] : attributes.entries()) {
    if (const auto* one = std::get_if<std::int64_t>(&value)) require(name, *one);
    if (const auto* several = std::get_if<std::vector<std::int64_t>>(&value)) {
      for (const std::int64_t each : *several) require(name, each);
    }
  }
}

}  // namespace

GraphBuilder::GraphBuilder(std::string name, std::int64_t batch, std::int64_t statistics_group)
    : statistics_group_(statistics_group),
      init_builder_(program_.states, init_),
      builder_(program_.states, forward_),
      example_rows_(program_.states, forward_, batch) {
  check_name(name);
  if (batch < 1) throw_user_error("a batch of {} examples is not possible; use at least 1", batch);
  program_.name = std::move(name);
  program_.batch = program_.microbatch = batch;
  program_.scalars = add_state("scalars", ops::scalars_type(), Role::scalar, false, {});
  program_.metrics =
      add_state("metrics", ops::metrics_type(), Role::scalar, false, {.kind = Initializer::Kind::constant, .amount = 0});
}

StateId GraphBuilder::add_state(const std::string& name, const Type& type, Role role, bool trainable, Initializer initializer) {
  check_name(name);
  if (!state_names_.insert(name).second)
    throw_user_error("two parts of the model are called '{}'; give each layer a name of its own", name);
  const StateId id(program_.states.size());
  program_.states.push_back({.name = name, .type = type, .role = role, .trainable = trainable});
  emit_initial_value(id, initializer);
  return id;
}

void GraphBuilder::emit_initial_value(StateId id, const Initializer& initializer) {
  const State& state = program_.states[id.index()];
  const EmitOptions options{.layer = state.name, .role = state.role, .phase = Phase::init, .writes = {id}};
  const auto key = static_cast<std::int64_t>(id.index());
  switch (initializer.kind) {
    case Initializer::Kind::none:  // set from outside
      return;
    case Initializer::Kind::constant:
      init_builder_.emit(ops::fill, {init_builder_.read(id)}, {{"value", initializer.amount}}, options);
      return;
    case Initializer::Kind::normal:
      init_builder_.emit(ops::init_normal, {init_builder_.read(id), init_builder_.read(program_.scalars)},
                         {{"std", initializer.amount}, {"key", key}}, options);
      return;
    case Initializer::Kind::uniform:
      init_builder_.emit(ops::init_uniform, {init_builder_.read(id), init_builder_.read(program_.scalars)},
                         {{"bound", initializer.amount}, {"key", key}}, options);
      return;
  }
}

ValueId GraphBuilder::parameter(const std::string& name, const Type& type, Initializer initializer) {
  return read(add_state(name, type, Role::parameter, true, initializer));
}

ValueId GraphBuilder::statistic(const std::string& name, const Type& type, Initializer initializer) {
  return read(add_state(name, type, Role::statistic, false, initializer));
}

std::vector<ValueId> GraphBuilder::emit(const std::string& name, const OpDef& op, std::vector<ValueId> inputs,
                                        Attributes attributes) {
  check_name(name);
  if (name.size() > kLongestLayerName)
    throw_user_error("layer '{}' has too long a name; use at most {} characters", name, kLongestLayerName);
  return in_layer(name, [&] {
    for (const ValueId input : inputs) require_countable(type_of(input).shape);
    require_countable(attributes);
    std::vector<ValueId> outputs = builder_.emit(op, std::move(inputs), std::move(attributes), {.name = name, .layer = name});
    for (const ValueId output : outputs) require_countable(type_of(output).shape);
    return outputs;
  });
}

ValueId GraphBuilder::images(const ImageOptions& options) {
  const auto shape = in_layer("images", [&] { return Shape{batch(), options.channels, options.height, options.width}; });
  const StateId staging =
      add_state("images", {.dtype = DType::u8, .shape = shape, .layout = Layout::channels_last()}, Role::input, false, {});
  const auto channels = static_cast<std::size_t>(options.channels);
  Attributes attributes{{"mean", options.mean.empty() ? std::vector<double>(channels, 127.5) : options.mean},
                        {"std", options.std.empty() ? std::vector<double>(channels, 64.0) : options.std},
                        {"padding", options.crop_padding},
                        {"bits", std::int64_t{bits_per_element(DType::f32)}},
                        {"augment", std::int64_t{0}}};
  const std::vector<ValueId> inputs{read(staging), read(program_.scalars)};
  const ValueId plain = emit("plain_input", ops::image_input, inputs, attributes).front();
  if (!options.augment) return plain;
  attributes.set("augment", std::int64_t{1});
  const ValueId augmented = emit("input", ops::image_input, inputs, attributes).front();
  forward_.in_evaluation.push_back({.trained = augmented, .evaluated = plain});
  return augmented;
}

ValueId GraphBuilder::features(const Shape& shape_of_one_example, const Layout& layout) {
  std::vector<std::int64_t> dims{batch()};
  dims.insert(dims.end(), shape_of_one_example.dims().begin(), shape_of_one_example.dims().end());
  return read(add_state("features", {.dtype = DType::f32, .shape = Shape(dims), .layout = layout}, Role::input, false, {}));
}

ValueId GraphBuilder::input(const std::string& name, const Type& type) {
  rows_of_each_example(name, type);
  return read(add_state(name, type, Role::input, false, {}));
}

std::int64_t GraphBuilder::rows_of_each_example(const std::string& layer, const Type& type) const {
  const auto rows = rows_of_examples(type, batch());
  if (!rows) {
    throw_user_error("layer '{}': the leading dimension of {} is not made of the {} examples of a microbatch", layer,
                     to_string(type), batch());
  }
  return *rows;
}

ValueId GraphBuilder::conv2d(const std::string& name, ValueId x, const Conv2dOptions& options) {
  const Shape& input = type_of(x).shape;
  if (input.rank() != 4) throw_user_error("layer '{}': the input is {}; a convolution takes [N,C,H,W]", name, to_string(input));
  if (options.groups < 1 || input[1] % options.groups != 0) {
    throw_user_error("layer '{}': {} input channels do not split into {} groups", name, input[1], options.groups);
  }
  if (options.out_channels < 1 || options.kernel < 1) {
    throw_user_error("layer '{}': {} output channels with a kernel of {} are not possible; use at least 1 of each", name,
                     options.out_channels, options.kernel);
  }
  const auto weight_shape = in_layer(name, [&] {
    return Shape{options.out_channels, input[1] / options.groups, options.kernel, options.kernel};
  });
  const double fan_in = static_cast<double>(weight_shape[1] * weight_shape[2] * weight_shape[3]);
  const Type weight_type{.dtype = DType::f32, .shape = weight_shape, .layout = Layout::channels_last()};
  // He et al.'s initialization for layers followed by ReLU.
  std::vector<ValueId> inputs{
      x, parameter(name + ".weight", weight_type, {.kind = Initializer::Kind::normal, .amount = std::sqrt(2.0 / fan_in)})};
  if (options.bias) {
    inputs.push_back(parameter(name + ".bias", {.dtype = DType::f32, .shape = {options.out_channels}},
                               {.kind = Initializer::Kind::uniform, .amount = 1.0 / std::sqrt(fan_in)}));
  }
  return emit(name, ops::conv2d, inputs,
              {{"stride", both(options.stride)},
               {"padding", both(options.padding)},
               {"dilation", both(options.dilation)},
               {"groups", options.groups}})
      .front();
}

ValueId GraphBuilder::batch_norm(const std::string& name, ValueId x, const BatchNormOptions& options) {
  const Shape shape = type_of(x).shape;
  if (shape.rank() != 4 && shape.rank() != 2) {
    throw_user_error("layer '{}': the input is {}; batch norm takes [N,C,H,W] or [N,C]", name, to_string(shape));
  }
  const Type row{.dtype = DType::f32, .shape = {shape[1]}};
  const Initializer ones{.kind = Initializer::Kind::constant, .amount = 1};
  const Initializer zeros{.kind = Initializer::Kind::constant, .amount = 0};
  const ValueId weight = parameter(name + ".weight", row, ones);
  const ValueId bias = parameter(name + ".bias", row, zeros);
  const StateId running_mean = add_state(name + ".running_mean", row, Role::statistic, false, zeros);
  const StateId running_var = add_state(name + ".running_var", row, Role::statistic, false, ones);
  const ValueId scalars = read(program_.scalars);
  const std::int64_t asked = options.group_size == 0 ? statistics_group_ : options.group_size;
  const std::int64_t rows = rows_of_each_example(name, type_of(x));
  const std::int64_t group_size = asked == 0 ? shape[0] : asked * rows;

  Attributes grouping{{"group_size", group_size}};
  set_rows_per_example(grouping, rows);
  const auto statistics = emit(name, ops::batch_norm_statistics, {x, scalars}, grouping);
  const ValueId old_mean = read(running_mean);
  const ValueId old_var = read(running_var);
  forward_.in_evaluation.push_back({.trained = statistics[0], .evaluated = old_mean});
  forward_.in_evaluation.push_back({.trained = statistics[1], .evaluated = old_var});
  Attributes moving{{"group_size", group_size},
                    {"momentum", options.momentum},
                    {"batch", shape[0]},
                    {"pixels", shape.rank() == 4 ? shape[2] * shape[3] : std::int64_t{1}}};
  set_rows_per_example(moving, rows);
  in_layer(name, [&] {
    return builder_.emit(ops::batch_norm_running, {statistics[0], statistics[1], old_mean, old_var, scalars}, moving,
                         {.name = name, .layer = name, .writes = {running_mean, running_var}});
  });
  Attributes apply = grouping;
  apply.set("epsilon", options.epsilon);
  return emit(name, ops::batch_norm_apply, {x, statistics[0], statistics[1], weight, bias, scalars}, apply).front();
}

ValueId GraphBuilder::group_norm(const std::string& name, ValueId x, std::int64_t groups, double epsilon) {
  const Shape& shape = type_of(x).shape;
  if (shape.rank() != 4) throw_user_error("layer '{}': the input is {}; group norm takes [N,C,H,W]", name, to_string(shape));
  const Type row{.dtype = DType::f32, .shape = {shape[1]}};
  const ValueId weight = parameter(name + ".weight", row, {.kind = Initializer::Kind::constant, .amount = 1});
  const ValueId bias = parameter(name + ".bias", row, {.kind = Initializer::Kind::constant, .amount = 0});
  return emit(name, ops::group_norm, {x, weight, bias}, {{"groups", groups}, {"epsilon", epsilon}}).front();
}

ValueId GraphBuilder::relu(const std::string& name, ValueId x) { return emit(name, ops::relu, {x}).front(); }

ValueId GraphBuilder::add(const std::string& name, ValueId a, ValueId b) { return emit(name, ops::add, {a, b}).front(); }

ValueId GraphBuilder::max_pool(const std::string& name, ValueId x, const PoolOptions& options) {
  return emit(name, ops::max_pool, {x},
              {{"kernel", both(options.kernel)}, {"stride", both(options.stride)}, {"padding", both(options.padding)}})
      .front();
}

ValueId GraphBuilder::avg_pool(const std::string& name, ValueId x, const PoolOptions& options) {
  return emit(name, ops::avg_pool, {x},
              {{"kernel", both(options.kernel)}, {"stride", both(options.stride)}, {"padding", both(options.padding)}})
      .front();
}

ValueId GraphBuilder::global_avg_pool(const std::string& name, ValueId x) {
  return emit(name, ops::global_avg_pool, {x}).front();
}

ValueId GraphBuilder::shortcut(const std::string& name, ValueId x, std::int64_t channels, std::int64_t stride) {
  if (stride == 1 && type_of(x).shape.rank() == 4 && type_of(x).shape[1] == channels) return x;
  return emit(name, ops::shortcut, {x}, {{"channels", channels}, {"stride", stride}}).front();
}

ValueId GraphBuilder::linear(const std::string& name, ValueId x, std::int64_t out_features, const LinearOptions& options) {
  const Shape shape = type_of(x).shape;
  const bool is_image = shape.rank() == 4 && !ops::lies_in_logical_order(type_of(x));
  if (shape.rank() < 2 || is_image)
    throw_user_error("layer '{}': the input is {}; a linear layer takes [N,features]; flatten it first", name, to_string(shape));
  if (out_features < 1) throw_user_error("layer '{}': {} output features are not possible; use at least 1", name, out_features);
  const std::int64_t features = shape.dims().back();
  // PyTorch's default, unless told.
  const Initializer uniform{.kind = Initializer::Kind::uniform, .amount = 1.0 / std::sqrt(static_cast<double>(features))};
  const Initializer normal{.kind = Initializer::Kind::normal, .amount = options.std.value_or(0)};
  const Initializer zeros{.kind = Initializer::Kind::constant, .amount = 0};
  const auto weight_shape = in_layer(name, [&] { return Shape{out_features, features}; });
  const bool as_rows = shape.rank() > 2;
  if (as_rows) x = reshape(name + ".rows", x, {type_of(x).elements() / features, features});
  std::vector<ValueId> inputs{
      x, parameter(name + ".weight", {.dtype = DType::f32, .shape = weight_shape}, options.std ? normal : uniform)};
  if (options.bias)
    inputs.push_back(parameter(name + ".bias", {.dtype = DType::f32, .shape = {out_features}}, options.std ? zeros : uniform));
  const ValueId y = emit(name, ops::linear, inputs).front();
  if (!as_rows) return y;
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims.back() = out_features;
  return reshape(name + ".shape", y, Shape(dims));
}

ValueId GraphBuilder::dropout(const std::string& name, ValueId x, double probability) {
  Attributes attributes{{"probability", probability}, {"key", ++random_keys_}};
  // Dropout of what does not depend on the examples is the same in all microbatches.
  const bool depends = example_rows_.depends_on_examples(x);
  set_rows_per_example(attributes, depends ? rows_of_each_example(name, type_of(x)) : 0);
  const ValueId y = emit(name, ops::dropout, {x, read(program_.scalars)}, attributes).front();
  forward_.in_evaluation.push_back({.trained = y, .evaluated = x});
  return y;
}

ValueId GraphBuilder::flatten(const std::string& name, ValueId x) {
  const Type& type = type_of(x);
  const Shape flat{type.shape[0], type.elements() / type.shape[0]};
  if (!ops::lies_in_logical_order(type)) {
    x = emit(name + ".order", ops::relayout, {x}, {{"channels_last", std::int64_t{0}}}).front();
  }
  return reshape(name, x, flat);
}

ValueId GraphBuilder::reshape(const std::string& name, ValueId x, const Shape& shape) {
  return emit(name, ops::reshape, {x}, {{"shape", std::vector<std::int64_t>(shape.dims().begin(), shape.dims().end())}}).front();
}

void GraphBuilder::softmax_cross_entropy(ValueId logits, ValueId labels, ValueId weights, double label_smoothing) {
  Attributes attributes{{"label_smoothing", label_smoothing}};
  set_rows_per_example(attributes, rows_of_each_example("loss", type_of(logits)));
  std::vector<ValueId> inputs{logits, labels, read(program_.scalars)};
  if (weights.valid()) inputs.push_back(weights);
  loss("loss", ops::softmax_cross_entropy, std::move(inputs), std::move(attributes));
}

void GraphBuilder::softmax_cross_entropy(ValueId logits, double label_smoothing) {
  const ValueId labels = input("labels", {.dtype = DType::i32, .shape = {type_of(logits).shape[0]}});
  softmax_cross_entropy(logits, labels, ValueId::none(), label_smoothing);
}

void GraphBuilder::loss(const std::string& name, const OpDef& op, std::vector<ValueId> inputs, Attributes attributes) {
  if (has_loss_) throw UserError("the model already has a loss");
  SNUG_CHECK(op.loss != nullptr, "{} is not a loss", op.name);
  const ValueId value = emit(name, op, std::move(inputs), std::move(attributes)).front();
  has_loss_ = true;
  builder_.emit(ops::add, {read(program_.metrics), value}, {}, {.name = "metrics", .layer = name, .writes = {program_.metrics}});
}

Program GraphBuilder::finish() && {
  if (!has_loss_) throw_user_error("the model '{}' has no loss; end it with softmax_cross_entropy", program_.name);
  program_.sections = {std::move(init_), std::move(forward_)};
  return std::move(program_);
}

void smooth_labels(Program& model, double share) {
  constexpr std::string_view kSmoothing = "label_smoothing";
  bool found = false;
  for (Section& section : model.sections) {
    for (Node& node : section.nodes) {
      if (!node.attributes.has(kSmoothing)) continue;
      node.attributes.set(kSmoothing, share);
      found = true;
    }
  }
  if (!found) throw_user_error("the loss of '{}' has no labels that could be smoothed", model.name);
}

std::int64_t parameter_count(const Program& model) {
  std::int64_t count = 0;
  for (const State& state : model.states) {
    if (state.role == Role::parameter) count += state.type.elements();
  }
  return count;
}

}  // namespace snug::frontend
