// Models: one of the zoo by name, or your own, layer by layer.
//
//   auto model = snug::Model::define("tiny", [](snug::Layers& net) {
//     auto x = net.images({.height = 32, .width = 32});
//     x = net.relu("relu1", net.conv2d("conv1", x, {.out_channels = 16, .padding = 1}));
//     net.softmax_cross_entropy(net.linear("fc", net.global_avg_pool("pool", x), 10));
//   });
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace snug {

struct Conv2dOptions {
  std::int64_t out_channels = 0;
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = false;
};

struct PoolOptions {
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;
};

struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;
  std::int64_t group_size = 0;  // examples whose statistics are taken together; 0: all of the microbatch
};

struct ImageOptions {
  std::int64_t channels = 3, height = 32, width = 32;
  bool augment = true;  // in training: random flip, and random crop after padding
  std::int64_t crop_padding = 4;
  std::vector<double> mean = {}, std = {};  // per channel in units of 0..255; empty: 127.5 and 64
};

struct LinearOptions {
  bool bias = true;
  // Of the initial weight, drawn from a normal distribution, with a bias of 0; nothing: uniform by the number of features.
  std::optional<double> std = std::nullopt;
};

// Queries, keys and values lie side by side in the columns of one value: `heads` of queries, then as many of keys and of values
// as `kv_heads` says.
struct AttentionOptions {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 0;  // grouped queries: fewer heads of keys and values; 0: as many as `heads`
  bool causal = true;         // a token sees itself and those before it; false: all of its example
  double dropout = 0;         // of the probabilities
};

// A convolution along sequences. The neighboring columns of a head share one kernel, whose taps a softmax weighs.
struct SequenceConvOptions {
  std::int64_t heads = 1;
  std::int64_t kernel = 3;  // taps
  bool causal = true;       // a token sees itself and those before it; false: as many on either side, which takes an odd kernel
  double drop_connect = 0;  // of the taps, after the softmax
};

// What a gated linear unit does to the first half of its input before it multiplies the second.
enum class Gate : std::uint8_t { sigmoid, silu, gelu };

// How a parameter of your own begins.
struct InitialValue {
  enum class Kind : std::uint8_t { constant, normal, uniform };
  Kind kind = Kind::constant;
  double amount = 0;  // the constant, the standard deviation, or the bound on either side of 0
};

// The constants of an op (stride, epsilon, ...), by name: whole numbers, numbers, or several of either.
using OpConstant = std::variant<std::int64_t, double, std::vector<std::int64_t>, std::vector<double>>;
using OpConstants = std::vector<std::pair<std::string, OpConstant>>;

// A value of the model under construction; only the Layers that made it can use it.
struct Tensor {
  std::uint32_t id = 0;
};

// What a model's definition builds with. Every layer has a name of its own; its parameters are <name>.weight, <name>.bias, ...
// UserError, naming the layer, when shapes do not go together.
class Layers {
 public:
  Tensor images(const ImageOptions& options);  // bytes, normalized on the way in
  // Numbers, taken as they are; of three dimensions those of an image: channels, height, width.
  Tensor features(const std::vector<std::int64_t>& shape_of_one_example);

  Tensor conv2d(const std::string& name, Tensor x, const Conv2dOptions& options);
  Tensor batch_norm(const std::string& name, Tensor x, const BatchNormOptions& options = {});
  Tensor group_norm(const std::string& name, Tensor x, std::int64_t groups, double epsilon = 1e-5);
  Tensor relu(const std::string& name, Tensor x);
  Tensor add(const std::string& name, Tensor a, Tensor b);
  Tensor max_pool(const std::string& name, Tensor x, const PoolOptions& options = {});
  Tensor avg_pool(const std::string& name, Tensor x, const PoolOptions& options = {});
  Tensor global_avg_pool(const std::string& name, Tensor x);
  // The identity shortcut of residual networks: every stride-th pixel, new channels zero.
  Tensor shortcut(const std::string& name, Tensor x, std::int64_t channels, std::int64_t stride);
  Tensor linear(const std::string& name, Tensor x, std::int64_t out_features, const LinearOptions& options = {});
  Tensor gelu(const std::string& name, Tensor x, bool by_tanh = true);
  Tensor silu(const std::string& name, Tensor x);
  Tensor dropout(const std::string& name, Tensor x, double probability);
  Tensor flatten(const std::string& name, Tensor x);
  Tensor reshape(const std::string& name, Tensor x, const std::vector<std::int64_t>& shape);

  // Sequences: a value has a row for each token, [examples * length, features].
  Tensor tokens(std::int64_t length);  // the input "tokens", i32
  Tensor embedding(const std::string& name, Tensor tokens, Tensor table);
  Tensor add_positions(const std::string& name, Tensor x, Tensor table);
  Tensor layer_norm(const std::string& name, Tensor x, double epsilon = 1e-5);
  Tensor rms_norm(const std::string& name, Tensor x, double epsilon = 1e-6);
  Tensor gated_linear_unit(const std::string& name, Tensor x, Gate gate = Gate::silu);
  Tensor rotary(const std::string& name, Tensor qkv, const AttentionOptions& options, double base = 10000);
  Tensor attention(const std::string& name, Tensor qkv, const AttentionOptions& options);
  // Queries [.., heads * size] with keys and values [.., 2 kv_heads * size] that come from elsewhere, of which each sees all.
  Tensor cross_attention(const std::string& name, Tensor q, Tensor kv, const AttentionOptions& options);
  // With the kernels <name>.weight, the same at all tokens.
  Tensor lightweight_conv(const std::string& name, Tensor x, const SequenceConvOptions& options);
  // With kernels that a linear layer, <name>.weight_linear, makes of each token.
  Tensor dynamic_conv(const std::string& name, Tensor x, const SequenceConvOptions& options);
  // What takes the place of attention in a dynamic convolution network: <name>.linear1 to twice the columns, a gated linear unit
  // that halves them, the convolution <name>.conv, and <name>.linear2.
  Tensor dynamic_conv_block(const std::string& name, Tensor x, const SequenceConvOptions& options);

  // What no layer above covers: any op of Snug's, by the name that `snug plan --dump-after differentiate` prints it with, and
  // parameters for it. The op's first result, and those beside it, are the tensors.
  std::vector<Tensor> op(const std::string& name, const std::string& op, const std::vector<Tensor>& inputs,
                         const OpConstants& constants = {});
  Tensor parameter(const std::string& name, const std::vector<std::int64_t>& shape, const InitialValue& initial = {});

  // Ends the model.
  void softmax_cross_entropy(Tensor logits, double label_smoothing = 0);
  // Ends a language model: logits x weight^T, of which only some rows exist at a time, and their cross-entropy with the input
  // "labels". The weight may be the table of an embedding.
  void linear_cross_entropy(const std::string& name, Tensor x, Tensor weight, double label_smoothing = 0);

  std::vector<std::int64_t> shape(Tensor x) const;

 private:
  friend class Model;
  struct Impl;
  explicit Layers(Impl& impl) : impl_(impl) {}
  Impl& impl_;
};

struct ZooSettings {
  std::int64_t classes = 0;     // 0: the model's own
  std::int64_t image_size = 0;  // 0: the model's own
  std::int64_t vocabulary = 0;  // of language models; 0: the model's own
  std::int64_t length = 0;      // tokens of an example; 0: the model's context
};

// A model that can be built for any batch size.
class Model {
 public:
  // "wrn-28-2", "preresnet-110", "resnet-18", "resnet-50", "vgg-16", "small-cnn"; UserError naming the known ones otherwise.
  static Model zoo(const std::string& name, const ZooSettings& settings = {});
  // `definition` is called once for each batch size that is tried, and must build the same layers every time.
  static Model define(const std::string& name, std::function<void(Layers&)> definition);

  // Parameters whose names begin with `prefix` keep their values and take no gradient and no optimizer memory. A frozen batch
  // norm still normalizes with the statistics of the batch and moves its running ones, as PyTorch's does with
  // requires_grad=False. UserError, with the nearest names, when no parameter's name begins so.
  Model& freeze(const std::string& prefix);

  std::int64_t parameter_count() const;

 private:
  friend struct Access;
  struct Impl;
  explicit Model(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace snug
