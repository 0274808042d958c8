#include "api/model_impl.h"
#include "base/error.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "ops/ops.h"
#include <snug/model.h>

namespace snug {

struct Layers::Impl {
  frontend::GraphBuilder builder;

  ValueId value(Tensor tensor) const {
    if (tensor.id >= builder.value_count()) throw UserError("a layer was given a tensor that this model did not make");
    return ValueId(tensor.id);
  }
};

namespace {

Tensor tensor(ValueId id) { return {static_cast<std::uint32_t>(id.index())}; }

}  // namespace

Tensor Layers::images(const ImageOptions& options) { return tensor(impl_.builder.images(options)); }

Tensor Layers::features(const std::vector<std::int64_t>& shape_of_one_example) {
  const bool is_image = shape_of_one_example.size() == 3;
  return tensor(impl_.builder.features(Shape(shape_of_one_example), is_image ? Layout::channels_last() : Layout::row_major()));
}

Tensor Layers::conv2d(const std::string& name, Tensor x, const Conv2dOptions& options) {
  return tensor(impl_.builder.conv2d(name, impl_.value(x), options));
}

Tensor Layers::batch_norm(const std::string& name, Tensor x, const BatchNormOptions& options) {
  return tensor(impl_.builder.batch_norm(name, impl_.value(x), options));
}

Tensor Layers::group_norm(const std::string& name, Tensor x, std::int64_t groups, double epsilon) {
  return tensor(impl_.builder.group_norm(name, impl_.value(x), groups, epsilon));
}

Tensor Layers::relu(const std::string& name, Tensor x) { return tensor(impl_.builder.relu(name, impl_.value(x))); }

Tensor Layers::add(const std::string& name, Tensor a, Tensor b) {
  return tensor(impl_.builder.add(name, impl_.value(a), impl_.value(b)));
}

Tensor Layers::max_pool(const std::string& name, Tensor x, const PoolOptions& options) {
  return tensor(impl_.builder.max_pool(name, impl_.value(x), options));
}

Tensor Layers::avg_pool(const std::string& name, Tensor x, const PoolOptions& options) {
  return tensor(impl_.builder.avg_pool(name, impl_.value(x), options));
}

Tensor Layers::global_avg_pool(const std::string& name, Tensor x) {
  return tensor(impl_.builder.global_avg_pool(name, impl_.value(x)));
}

Tensor Layers::shortcut(const std::string& name, Tensor x, std::int64_t channels, std::int64_t stride) {
  return tensor(impl_.builder.shortcut(name, impl_.value(x), channels, stride));
}

Tensor Layers::linear(const std::string& name, Tensor x, std::int64_t out_features, const LinearOptions& options) {
  return tensor(impl_.builder.linear(name, impl_.value(x), out_features, options));
}

Tensor Layers::gelu(const std::string& name, Tensor x, bool by_tanh) {
  return tensor(impl_.builder.gelu(name, impl_.value(x), by_tanh));
}

Tensor Layers::silu(const std::string& name, Tensor x) { return tensor(impl_.builder.silu(name, impl_.value(x))); }

Tensor Layers::tokens(std::int64_t length) { return tensor(impl_.builder.tokens(length)); }

Tensor Layers::embedding(const std::string& name, Tensor tokens, Tensor table) {
  return tensor(impl_.builder.embedding(name, impl_.value(tokens), impl_.value(table)));
}

Tensor Layers::add_positions(const std::string& name, Tensor x, Tensor table) {
  return tensor(impl_.builder.add_positions(name, impl_.value(x), impl_.value(table)));
}

Tensor Layers::layer_norm(const std::string& name, Tensor x, double epsilon) {
  return tensor(impl_.builder.layer_norm(name, impl_.value(x), epsilon));
}

Tensor Layers::rms_norm(const std::string& name, Tensor x, double epsilon) {
  return tensor(impl_.builder.rms_norm(name, impl_.value(x), epsilon));
}

Tensor Layers::gated_linear_unit(const std::string& name, Tensor x, Gate gate) {
  return tensor(impl_.builder.gated_linear_unit(name, impl_.value(x), gate));
}

Tensor Layers::rotary(const std::string& name, Tensor qkv, const AttentionOptions& options, double base) {
  return tensor(impl_.builder.rotary(name, impl_.value(qkv), options, base));
}

Tensor Layers::attention(const std::string& name, Tensor qkv, const AttentionOptions& options) {
  return tensor(impl_.builder.attention(name, impl_.value(qkv), options));
}

Tensor Layers::cross_attention(const std::string& name, Tensor q, Tensor kv, const AttentionOptions& options) {
  return tensor(impl_.builder.cross_attention(name, impl_.value(q), impl_.value(kv), options));
}

Tensor Layers::lightweight_conv(const std::string& name, Tensor x, const SequenceConvOptions& options) {
  return tensor(impl_.builder.lightweight_conv(name, impl_.value(x), options));
}

Tensor Layers::dynamic_conv(const std::string& name, Tensor x, const SequenceConvOptions& options) {
  return tensor(impl_.builder.dynamic_conv(name, impl_.value(x), options));
}

Tensor Layers::dynamic_conv_block(const std::string& name, Tensor x, const SequenceConvOptions& options) {
  return tensor(impl_.builder.dynamic_conv_block(name, impl_.value(x), options));
}

Tensor Layers::dropout(const std::string& name, Tensor x, double probability) {
  return tensor(impl_.builder.dropout(name, impl_.value(x), probability));
}

Tensor Layers::flatten(const std::string& name, Tensor x) { return tensor(impl_.builder.flatten(name, impl_.value(x))); }

Tensor Layers::reshape(const std::string& name, Tensor x, const std::vector<std::int64_t>& shape) {
  return tensor(impl_.builder.reshape(name, impl_.value(x), Shape(shape)));
}

std::vector<Tensor> Layers::op(const std::string& name, const std::string& op, const std::vector<Tensor>& inputs,
                               const OpConstants& constants) {
  const OpDef* found = ops::find(op);
  if (found == nullptr) throw_user_error("layer '{}': there is no op '{}'", name, op);
  std::vector<ValueId> values;
  values.reserve(inputs.size());
  for (const Tensor input : inputs) values.push_back(impl_.value(input));
  Attributes attributes;
  for (const auto& [constant, value] : constants) attributes.set(constant, value);
  std::vector<Tensor> results;
  for (const ValueId result : impl_.builder.emit(name, *found, std::move(values), std::move(attributes)))
    results.push_back(tensor(result));
  return results;
}

Tensor Layers::parameter(const std::string& name, const std::vector<std::int64_t>& shape, const InitialValue& initial) {
  using Kind = Initializer::Kind;
  const Kind kind = initial.kind == InitialValue::Kind::normal    ? Kind::normal
                    : initial.kind == InitialValue::Kind::uniform ? Kind::uniform
                                                                  : Kind::constant;
  const Type type{.dtype = DType::f32, .shape = Shape(shape)};
  return tensor(impl_.builder.parameter(name, type, {.kind = kind, .amount = initial.amount}));
}

void Layers::softmax_cross_entropy(Tensor logits, double label_smoothing) {
  impl_.builder.softmax_cross_entropy(impl_.value(logits), label_smoothing);
}

void Layers::linear_cross_entropy(const std::string& name, Tensor x, Tensor weight, double label_smoothing) {
  impl_.builder.linear_cross_entropy(name, impl_.value(x), impl_.value(weight), label_smoothing);
}

std::vector<std::int64_t> Layers::shape(Tensor x) const {
  const auto dims = impl_.builder.type_of(impl_.value(x)).shape.dims();
  return {dims.begin(), dims.end()};
}

Program Model::Impl::program(const ModelRequest& request) const {
  Program result = build(request);
  frontend::freeze(result, frozen);
  return result;
}

Model Model::zoo(const std::string& name, const ZooSettings& settings) {
  auto impl = std::make_shared<Impl>();
  impl->name = name;
  impl->build = [name, settings](const ModelRequest& request) {
    return frontend::build_zoo_model(name, {.batch = request.batch,
                                            .classes = settings.classes,
                                            .image_size = settings.image_size,
                                            .vocabulary = settings.vocabulary,
                                            .length = settings.length,
                                            .statistics_group = request.statistics_group});
  };
  impl->program({});  // an unknown name is the caller's mistake here, not at the first use
  return Model(std::move(impl));
}

Model Model::define(const std::string& name, std::function<void(Layers&)> definition) {
  auto impl = std::make_shared<Impl>();
  impl->name = name;
  impl->build = [name, definition = std::move(definition)](const ModelRequest& request) {
    Layers::Impl layers_impl{.builder = {name, request.batch, request.statistics_group}};
    Layers layers(layers_impl);
    definition(layers);
    return std::move(layers_impl.builder).finish();
  };
  impl->program({});
  return Model(std::move(impl));
}

Model& Model::freeze(const std::string& prefix) {
  auto changed = std::make_shared<Impl>(*impl_);  // copies of this model stay as they are
  changed->frozen.push_back(prefix);
  changed->program({});
  impl_ = std::move(changed);
  return *this;
}

std::int64_t Model::parameter_count() const { return frontend::parameter_count(impl_->program({})); }

}  // namespace snug
