#include "cases.h"

#include "backends/sparse_store.h"
#include "ops/common.h"

namespace snug::backends {

std::string Case::name() const {
  std::string text(op->name);
  for (const Tensor& input : inputs) text += " " + to_string(input.type());
  return text;
}

std::vector<Type> inferred_types(const Case& call) {
  std::vector<Type> types;
  for (const Tensor& input : call.inputs) types.push_back(input.type());
  return infer_types(*call.op, {types, call.attributes});
}

unsigned layout_choices(const Case& original) {
  unsigned choices = 1;
  for (const Tensor& input : original.inputs) choices *= original.any_layout && input.type().shape.rank() == 4 ? 2 : 1;
  return choices;
}

Case with_layouts(const Case& original, unsigned channels_last) {
  Case result = original;
  if (!original.any_layout) return result;
  for (Tensor& input : result.inputs) {
    if (input.type().shape.rank() != 4) continue;
    input = input.with_layout((channels_last & 1U) != 0);
    channels_last >>= 1U;
  }
  return result;
}

Case accumulating(const Case& original, const Tensor& accumulator) {
  Case result = original;
  result.attributes.set(kAccumulate, std::int64_t{1});
  result.inputs.push_back(accumulator);
  return result;
}

namespace {

// Tensors of one dtype, every one with other values.
class Maker {
 public:
  explicit Maker(DType dtype) : dtype_(dtype) {}
  Tensor operator()(Shape shape) { return Tensor::random({.dtype = dtype_, .shape = shape}, ++seed_); }
  Tensor positive(Shape shape) { return Tensor::random({.dtype = dtype_, .shape = shape}, ++seed_, 0.1, 1.0); }
  Tensor numbers(DType dtype, Shape shape, double below) {
    return Tensor::random({.dtype = dtype, .shape = shape}, ++seed_, 0, below);
  }
  Tensor single(Shape shape) { return Tensor::random({.dtype = DType::f32, .shape = shape}, ++seed_); }
  std::int64_t dtype() const { return static_cast<std::int64_t>(dtype_); }
  std::int64_t bits() const { return bits_per_element(dtype_); }

 private:
  DType dtype_;
  std::uint64_t seed_ = 0;
};

constexpr std::int64_t kOne = 1;

void add_convolutions(std::vector<Case>& cases, Maker& make) {
  const Attributes attributes{
      {"stride", Integers{2, 1}}, {"padding", Integers{1, 1}}, {"dilation", Integers{1, 2}}, {"groups", kOne * 2}};
  Attributes for_input = attributes, for_weight = attributes;
  for_input.set("input_shape", Integers{3, 10, 7, 6});
  for_weight.set("kernel", Integers{3, 2});
  const Tensor x = make({3, 10, 7, 6}), w = make({38, 5, 3, 2}), bias = make({38}), dy = make({3, 38, 4, 6});
  cases.push_back({&ops::conv2d, {x, w}, attributes});
  cases.push_back({&ops::conv2d, {x, w, bias}, attributes});
  cases.push_back({&ops::conv2d_grad_input, {dy, w}, for_input});
  cases.push_back({&ops::conv2d_grad_weight, {dy, x}, for_weight});
}

void add_norms(std::vector<Case>& cases, Maker& make) {
  const Tensor scalars = Tensor::scalars({.valid_examples = 4, .batch_examples = 6});
  for (const Shape& shape : {Shape{5, 35, 3, 2}, Shape{5, 35}}) {
    const Tensor x = make(shape), dy = make(shape), weight = make({35}), bias = make({35});
    const Tensor mean = make({3, 35}), variance = make.positive({3, 35}), fixed_mean = make({35}),
                 fixed_variance = make.positive({35});
    const Tensor weight_sums = make({3, 35}), bias_sums = make({3, 35});
    const Attributes grouped{{"group_size", kOne * 2}, {"epsilon", 1e-5}};
    cases.push_back({&ops::batch_norm_statistics, {x, scalars}, {{"group_size", kOne * 2}}});
    cases.push_back({&ops::batch_norm_apply, {x, mean, variance, weight, bias, scalars}, grouped});
    cases.push_back({&ops::batch_norm_apply, {x, fixed_mean, fixed_variance, weight, bias, scalars}, grouped});
    cases.push_back({&ops::batch_norm_running,
                     {mean, variance, fixed_mean, fixed_variance, scalars},
                     {{"group_size", kOne * 2}, {"momentum", 0.1}, {"batch", kOne * 5}, {"pixels", kOne * 6}}});
    cases.push_back({&ops::batch_norm_grad_reduce, {dy, x, mean, variance}, grouped});
    cases.push_back({&ops::batch_norm_grad_input, {dy, x, mean, variance, weight, weight_sums, bias_sums, scalars}, grouped});
    cases.push_back({&ops::batch_norm_grad_fixed, {dy, fixed_variance, weight}, grouped});
  }
  const Tensor x = make({3, 36, 3, 2}), dy = make({3, 36, 3, 2}), weight = make({36}), bias = make({36});
  const Tensor mean = make({3, 4}), variance = make.positive({3, 4});
  const Attributes groups{{"groups", kOne * 4}, {"epsilon", 1e-5}};
  cases.push_back({&ops::group_norm, {x, weight, bias}, groups});
  cases.push_back({&ops::group_norm_grad_input, {dy, x, mean, variance, weight}, groups});
  cases.push_back({&ops::group_norm_grad_parameters, {dy, x, mean, variance}, groups});
}

void add_elementwise(std::vector<Case>& cases, Maker& make) {
  for (const Shape& shape : {Shape{3, 5, 3, 3}, Shape{7, 11}, Shape{13}}) {
    const Tensor a = make(shape), b = make(shape), bits = make.numbers(DType::bit, shape, 2);
    cases.push_back({&ops::relu, {a}});
    cases.push_back({&ops::relu_grad, {a, b}});
    cases.push_back({&ops::relu_grad_bits, {a, bits}});
    cases.push_back({&ops::sign_bits, {a}});
    for (const std::int64_t tanh : {0, 1}) {
      cases.push_back({&ops::gelu, {a}, {{"tanh", tanh}}});
      cases.push_back({&ops::gelu_grad, {a, b}, {{"tanh", tanh}}});
    }
    cases.push_back({&ops::silu, {a}});
    cases.push_back({&ops::silu_grad, {a, b}});
    cases.push_back({&ops::add, {a, b}});
    cases.push_back(
        {&ops::dropout, {a, Tensor::scalars({.seed = 1, .step = 2, .first_example = 3})}, {{"probability", 0.4}, {"key", kOne}}});
    cases.push_back({&ops::fill, {a}, {{"value", 0.3}}});
    cases.push_back({&ops::init_normal, {a, Tensor::scalars({.seed = 4})}, {{"std", 0.1}, {"key", kOne}}});
    cases.push_back({&ops::init_uniform, {a, Tensor::scalars({.seed = 4})}, {{"bound", 0.1}, {"key", kOne}}});
    const Tensor rate = Tensor::scalars({.learning_rate = 0.1, .loss_scale = 4});
    cases.push_back({&ops::sgd, {a, b, rate}, {{"momentum", 0.0}, {"weight_decay", 0.1}, {"nesterov", kOne * 0}}});
    cases.push_back({&ops::sgd, {a, b, rate, make(shape)}, {{"momentum", 0.9}, {"weight_decay", 0.1}, {"nesterov", kOne}}});
    const Tensor sum({.dtype = DType::f64, .shape = {1}}, {7}), norm({.dtype = DType::f64, .shape = {2}}, {3, 0.25});
    cases.push_back({&ops::sgd, {a, b, rate, norm}, {{"momentum", 0.0}, {"weight_decay", 0.1}, {"nesterov", kOne * 0}}});
    cases.push_back({&ops::sgd, {a, b, rate, make(shape), norm}, {{"momentum", 0.9}, {"weight_decay", 0.1}, {"nesterov", kOne}}});
    const Tensor updates({.dtype = DType::f64, .shape = {1}}, {3});
    const Attributes adamw{{"beta1", 0.9}, {"beta2", 0.99}, {"epsilon", 1e-3}, {"weight_decay", 0.1}};
    cases.push_back({&ops::adamw, {a, b, rate, make(shape), make.positive(shape), updates}, adamw});
    cases.push_back({&ops::adamw, {a, b, rate, make(shape), make.positive(shape), updates, norm}, adamw});
    const Tensor halves = make.numbers(DType::f16, shape, 30000), scales({.dtype = DType::f32, .shape = {2}}, {0x1p-15, 0x1p-14});
    cases.push_back({&ops::adamw_scaled, {a, b, rate, halves, halves, scales, updates}, adamw, false});
    cases.push_back({&ops::adamw_scaled, {a, b, rate, halves, halves, scales, updates, norm}, adamw, false});
    cases.push_back({&ops::count_update, {updates, rate}});
    cases.push_back({&ops::count_update, {updates, rate, norm}});
    cases.push_back({&ops::sum_of_squares, {a}});
    cases.push_back({&ops::sum_of_squares, {a, sum}});
    cases.push_back({&ops::clip_factor, {sum, Tensor::scalars({.loss_scale = 4, .clip_norm = 0.5F})}});
    cases.push_back({&ops::finite_factor, {Tensor({.dtype = DType::f64, .shape = {3}}, {2, 3, 4})}});
  }
  {
    const Tensor rate = Tensor::scalars({.learning_rate = 0.1, .loss_scale = 4});
    const Attributes rule{{"momentum", 0.9}, {"weight_decay", 0.1}, {"nesterov", kOne}};
    const Tensor m = make({3, 5, 3, 3}), w = make({3, 5, 3, 3});
    cases.push_back({&ops::momentum_add, {m, w, rate}, {{"summand", kOne}}});
    cases.push_back({&ops::momentum_decay, {m, w, rate}, {{"momentum", 0.9}, {"weight_decay", 0.1}}});
    cases.push_back({&ops::momentum_step, {w, rate, m}});
    cases.push_back({&ops::sgd_quantized,
                     {make({25, 21}), make({25, 21}), rate, make.numbers(DType::u8, {525}, 256), make.single({3})},
                     rule,
                     false});
    cases.push_back(
        {&ops::adamw_quantized,
         {make({25, 21}), make({25, 21}), rate, make.numbers(DType::u8, {525}, 256), make.numbers(DType::u8, {525}, 256),
          Tensor({.dtype = DType::f32, .shape = {3, 2}}, {0.5, 1, 2, 0.25, 1, 3}),
          Tensor({.dtype = DType::f64, .shape = {1}}, {3})},
         {{"beta1", 0.9}, {"beta2", 0.99}, {"epsilon", 1e-3}, {"weight_decay", 0.1}},
         false});
  }
  for (const std::int64_t bits : {2, 4, 8}) {
    const Tensor draws = Tensor::scalars({.seed = 1, .step = 2, .first_example = 3});
    cases.push_back({&ops::pack, {make({3, 5, 7, 4}), draws}, {{"bits", bits}, {"key", kOne}}, false});
    cases.push_back({&ops::unpack,
                     {make.numbers(DType::u8, {(420 * bits + 7) / 8}, 256), make.single({2, 2})},
                     {{"bits", bits}, {"dtype", make.dtype()}, {"channels_last", kOne}, {"input_shape", Integers{3, 5, 7, 4}}},
                     false});
  }
  cases.push_back({&ops::copy_to_space, {make({3, 5, 2, 2})}, {{"host", std::int64_t{1}}}, false});
  cases.push_back({&ops::reshape, {make({3, 5, 2, 2})}, {{"shape", Integers{3, 20}}}, false});
  cases.push_back({&ops::relayout, {make({3, 5, 3, 2})}, {{"channels_last", kOne}}});
  cases.push_back({&ops::relayout, {make({3, 5, 3, 2})}, {{"channels_last", kOne * 0}}});
}

void add_pools(std::vector<Case>& cases, Maker& make) {
  for (const std::int64_t kernel : {3, 5}) {  // an argmax of 4 and of 8 bits
    const Attributes attributes{{"kernel", Integers{kernel, kernel}}, {"stride", Integers{2, 2}}, {"padding", Integers{1, 1}}};
    Attributes backward = attributes;
    backward.set("input_shape", Integers{3, 7, 7, 6});
    const std::int64_t out_height = (7 + 2 - kernel) / 2 + 1, out_width = (6 + 2 - kernel) / 2 + 1;
    const Tensor x = make({3, 7, 7, 6}), dy = make({3, 7, out_height, out_width});
    const Tensor argmax =
        make.numbers(kernel == 3 ? DType::u4 : DType::u8, dy.type().shape, static_cast<double>(kernel * kernel));
    cases.push_back({&ops::max_pool, {x}, attributes});
    cases.push_back({&ops::max_pool_grad, {dy, x}, attributes});
    cases.push_back({&ops::max_pool_argmax, {x}, attributes});
    cases.push_back({&ops::max_pool_grad_argmax, {dy, argmax}, backward});
    cases.push_back({&ops::avg_pool, {x}, attributes});
    cases.push_back({&ops::avg_pool_grad, {dy}, backward});
  }
  cases.push_back({&ops::global_avg_pool, {make({3, 35, 3, 2})}});
  cases.push_back({&ops::global_avg_pool_grad, {make({3, 35})}, {{"input_shape", Integers{3, 35, 3, 2}}}});
  const Attributes shortcut{{"stride", kOne * 2}, {"channels", kOne * 7}};
  Attributes shortcut_backward = shortcut;
  shortcut_backward.set("input_shape", Integers{3, 5, 5, 4});
  cases.push_back({&ops::shortcut, {make({3, 5, 5, 4})}, shortcut});
  cases.push_back({&ops::shortcut_grad, {make({3, 7, 3, 2})}, shortcut_backward});
}

void add_ends(std::vector<Case>& cases, Maker& make) {
  const Tensor x = make({35, 50}), weight = make({19, 50}), bias = make({19}), dy = make({35, 19});
  cases.push_back({&ops::linear, {x, weight}});
  cases.push_back({&ops::linear, {x, weight, bias}});
  cases.push_back({&ops::linear_grad_input, {dy, weight}});
  cases.push_back({&ops::linear_grad_weight, {dy, x}});
  cases.push_back({&ops::sum_to_channels, {make({3, 35, 3, 2})}});
  cases.push_back({&ops::sum_to_channels, {make({4, 35})}});
  const std::vector<Tensor> loss{make({5, 7}), make.numbers(DType::i32, {5}, 7),
                                 Tensor::scalars({.valid_examples = 4, .total_weight = 9, .loss_scale = 2})};
  cases.push_back({&ops::softmax_cross_entropy, loss, {{"label_smoothing", 0.1}}});
  cases.push_back({&ops::softmax_cross_entropy_grad, loss, {{"label_smoothing", 0.1}}});
  // Two rows an example, so that two examples are valid and one is padding, each row with its weight.
  const std::vector<Tensor> weighted{
      make({6, 7}), make.numbers(DType::i32, {6}, 7), Tensor::scalars({.valid_examples = 2, .total_weight = 9, .loss_scale = 2}),
      Tensor({.dtype = ops::statistics_dtype(static_cast<DType>(make.dtype())), .shape = {6}}, {1, 0.5, 0, 2, 1, 1})};
  const Attributes two_rows{{"label_smoothing", 0.1}, {"rows_per_example", kOne * 2}};
  cases.push_back({&ops::softmax_cross_entropy, weighted, two_rows});
  cases.push_back({&ops::softmax_cross_entropy_grad, weighted, two_rows});
  for (const std::int64_t augment : {0, 1}) {
    cases.push_back({&ops::image_input,
                     {make.numbers(DType::u8, {5, 3, 6, 5}, 256), Tensor::scalars({.seed = 1, .step = 2, .first_example = 3})},
                     {{"mean", std::vector<double>{120, 110, 100}},
                      {"std", std::vector<double>{60, 61, 62}},
                      {"augment", augment},
                      {"padding", kOne * 2},
                      {"bits", make.bits()}}});
  }
}

// Rows of three examples of five tokens each; the indices and labels of some are out of range.
void add_sequences(std::vector<Case>& cases, Maker& make) {
  constexpr std::int64_t kRows = 15, kColumns = 12, kClasses = 7, kLength = 5;
  const Attributes of_examples{{"rows_per_example", kLength}};
  Tensor indices = make.numbers(DType::i32, {kRows}, kClasses);
  indices.set(3, -100);
  indices.set(14, kClasses);
  const Tensor x = make({kRows, kColumns}), dy = make({kRows, kColumns}), table = make({kClasses, kColumns});
  cases.push_back({&ops::embedding, {indices, table}});
  cases.push_back({&ops::embedding_grad, {indices, dy}, {{"rows", kClasses}}});
  cases.push_back({&ops::add_positions, {x, table}, of_examples});
  cases.push_back({&ops::add_positions_grad, {dy}, {{"rows_per_example", kLength}, {"positions", kClasses}}});

  const Tensor weight = make({kColumns}), bias = make({kColumns}), mean = make({kRows}), inverse = make.positive({kRows});
  cases.push_back({&ops::layer_norm, {x, weight, bias}, {{"epsilon", 1e-5}}});
  cases.push_back({&ops::layer_norm_grad_input, {dy, x, weight, mean, inverse}});
  cases.push_back({&ops::layer_norm_grad_parameters, {dy, x, mean, inverse}});
  cases.push_back({&ops::rms_norm, {x, weight}, {{"epsilon", 1e-5}}});
  cases.push_back({&ops::rms_norm_grad_input, {dy, x, weight, inverse}});
  cases.push_back({&ops::rms_norm_grad_weight, {dy, x, inverse}});

  for (const std::int64_t activation : {0, 1, 2}) {
    cases.push_back({&ops::gated_linear_unit, {make({kRows, 2 * kColumns})}, {{"activation", activation}}});
    cases.push_back({&ops::gated_linear_unit_grad, {dy, make({kRows, 2 * kColumns})}, {{"activation", activation}}});
  }
  for (const std::int64_t inverted : {0, 1}) {
    cases.push_back(
        {&ops::rotary,
         {x},
         {{"heads", kOne * 2}, {"head_size", kOne * 4}, {"base", 100.0}, {"rows_per_example", kLength}, {"inverse", inverted}}});
  }
  // A row of each example, some of them padding.
  Tensor positions = make.numbers(DType::i32, {kRows}, kClasses);
  positions.set(0, 0);
  positions.set(2, -1);
  positions.set(7, kClasses - 1);
  positions.set(9, kClasses);
  positions.set(11, -1000000);
  cases.push_back({&ops::add_positions_at, {x, table, positions}});
  for (const std::int64_t inverted : {0, 1}) {
    cases.push_back({&ops::rotary_at,
                     {x, positions},
                     {{"heads", kOne * 2}, {"head_size", kOne * 4}, {"base", 100.0}, {"inverse", inverted}}});
  }
  cases.push_back({&ops::softmax, {make({2, 3, 5, 7})}, {}, false});
  cases.push_back({&ops::softmax_grad, {make({2, 3, 5, 7}), make.positive({2, 3, 5, 7})}, {}, false});
  for (const std::int64_t transposed : {0, 1, 2, 3}) {
    const std::int64_t a = transposed % 2, b = transposed / 2;
    cases.push_back({&ops::batched_product,
                     {make(a == 1 ? Shape{2, 6, 5} : Shape{2, 5, 6}), make(b == 1 ? Shape{2, 3, 6} : Shape{2, 6, 3})},
                     {{"transpose_a", a}, {"transpose_b", b}}});
  }
}

void add_sequence_convolutions(std::vector<Case>& cases, Maker& make) {
  constexpr std::int64_t kRows = 15, kLength = 5, kHeads = 3, kSize = 4, kKernel = 3;
  const Tensor x = make({kRows, kHeads * kSize}), dy = make({kRows, kHeads * kSize});
  const Tensor shared = make({kHeads, kKernel}), of_rows = make({kRows, kHeads * kKernel});
  for (const std::int64_t causal : {0, 1}) {
    const Attributes attributes{{"heads", kHeads}, {"kernel", kKernel}, {"causal", causal}, {"rows_per_example", kLength}};
    cases.push_back({&ops::lightweight_conv, {x, shared}, attributes});
    cases.push_back({&ops::lightweight_conv_grad_input, {dy, shared}, attributes});
    cases.push_back({&ops::lightweight_conv_grad_weight, {dy, x}, attributes});
    cases.push_back({&ops::dynamic_conv, {x, of_rows}, attributes});
    cases.push_back({&ops::dynamic_conv_grad_input, {dy, of_rows}, attributes});
    cases.push_back({&ops::dynamic_conv_grad_weight, {dy, x}, attributes});
  }
}

void add_attention(std::vector<Case>& cases, Maker& make) {
  // Four query heads share two of keys and values, three columns each; of the last example nothing is seen.
  constexpr std::int64_t kRows = 15, kLength = 5, kHeads = 4, kKvHeads = 2, kSize = 3;
  const Tensor qkv = make({kRows, (kHeads + 2 * kKvHeads) * kSize}), y = make({kRows, kHeads * kSize}), dy = make(y.type().shape);
  const Tensor log_sum_exp = make.positive({kRows, kHeads}), probabilities = make.positive({kRows, kHeads * kLength});
  const Tensor scalars = Tensor::scalars({.seed = 1, .step = 2, .first_example = 3});
  const Tensor lengths({.dtype = DType::i32, .shape = {3}}, {4, 1000, -7});
  for (const std::int64_t causal : {0, 1}) {
    for (const bool has_lengths : {false, true}) {
      const Attributes attributes{{"heads", kHeads}, {"kv_heads", kKvHeads}, {"causal", causal},           {"scale", 0.7},
                                  {"dropout", 0.3},  {"key", kOne},          {"rows_per_example", kLength}};
      const auto add = [&](const OpDef& op, std::vector<Tensor> inputs) {
        if (has_lengths) inputs.push_back(lengths);
        cases.push_back({&op, std::move(inputs), attributes});
      };
      add(ops::attention, {qkv, scalars});
      add(ops::attention_grad, {dy, qkv, y, log_sum_exp, scalars});
      add(ops::attention_probabilities, {qkv, scalars});
      add(ops::attention_grad_probabilities, {dy, qkv, probabilities, scalars});
    }
  }
}

void add_cross_attention(std::vector<Case>& cases, Maker& make) {
  constexpr std::int64_t kLength = 5, kKeyLength = 4, kHeads = 4, kKvHeads = 2, kSize = 3;
  const Tensor q = make({3 * kLength, kHeads * kSize}), kv = make({3 * kKeyLength, 2 * kKvHeads * kSize});
  const Tensor y = make(q.type().shape), dy = make(q.type().shape), log_sum_exp = make.positive({3 * kLength, kHeads});
  const Tensor scalars = Tensor::scalars({.seed = 1, .step = 2, .first_example = 3});
  const Tensor lengths({.dtype = DType::i32, .shape = {3}}, {3, 1000, -7});
  const Attributes attributes{{"heads", kHeads},
                              {"kv_heads", kKvHeads},
                              {"scale", 0.7},
                              {"dropout", 0.3},
                              {"key", kOne},
                              {"rows_per_example", kLength},
                              {"key_rows_per_example", kKeyLength}};
  for (const bool has_lengths : {false, true}) {
    const auto add = [&](const OpDef& op, std::vector<Tensor> inputs) {
      if (has_lengths) inputs.push_back(lengths);
      cases.push_back({&op, std::move(inputs), attributes});
    };
    add(ops::cross_attention, {q, kv, scalars});
    add(ops::cross_attention_grad, {dy, q, kv, y, log_sum_exp, scalars});
  }
}

void add_attention_step(std::vector<Case>& cases, Maker& make) {
  // Examples at the start, in the middle and at the end of a context of five, and two that are padding.
  constexpr std::int64_t kExamples = 5, kContext = 5, kHeads = 4, kKvHeads = 2, kSize = 3;
  const Tensor qkv = make({kExamples, (kHeads + 2 * kKvHeads) * kSize});
  const Tensor keys = make({kExamples * kContext, kKvHeads * kSize}), values = make(keys.type().shape);
  const Tensor positions({.dtype = DType::i32, .shape = {kExamples}}, {0, 2, kContext - 1, -1, kContext});
  cases.push_back(
      {&ops::attention_step, {qkv, keys, values, positions}, {{"heads", kHeads}, {"kv_heads", kKvHeads}, {"scale", 0.7}}});
}

void add_linear_cross_entropy(std::vector<Case>& cases, Maker& make) {
  constexpr std::int64_t kRows = 35, kColumns = 13, kClasses = 9;
  Tensor labels = make.numbers(DType::i32, {kRows}, kClasses);
  labels.set(1, -100);
  labels.set(20, kClasses);
  const std::vector<Tensor> plain{make({kRows, kColumns}), make({kClasses, kColumns}), labels,
                                  Tensor::scalars({.valid_examples = 6, .total_weight = 28, .loss_scale = 2})};
  std::vector<Tensor> weighted = plain;
  const DType statistic = ops::statistics_dtype(static_cast<DType>(make.dtype()));
  weighted.push_back(Tensor::random({.dtype = statistic, .shape = {kRows}}, 7, 0, 2));
  const Attributes attributes{{"label_smoothing", 0.1}, {"rows_per_example", kOne * 5}};
  for (const std::vector<Tensor>& inputs : {plain, weighted}) {
    cases.push_back({&ops::linear_cross_entropy, inputs, attributes});
    cases.push_back({&ops::linear_cross_entropy_step, inputs, attributes});
  }
}

// A store of two tensors; convolutions work on the second.
void add_sparse(std::vector<Case>& cases, Maker& make) {
  const ops::SparseGrid grid{.rows = {3, 6}, .columns = {4, 20}, .bits = 5};
  const Integers nonzeros{5, 41};
  constexpr std::int64_t kNonzeros = 46;
  std::vector<std::uint8_t> packed(static_cast<std::size_t>(ops::sparse_columns_type(kNonzeros, grid.bits).bytes().count()));
  std::vector<std::int32_t> offsets(10);
  draw_pattern(grid, nonzeros, 3, packed, offsets.data());
  const Tensor values = make({kNonzeros}), momentum = make({kNonzeros});
  const Tensor columns(ops::sparse_columns_type(kNonzeros, grid.bits), {packed.begin(), packed.end()});
  const Tensor rows(ops::sparse_rows_type(9), {offsets.begin(), offsets.end()});
  const Tensor scalars = Tensor::scalars({.seed = 4, .step = 9});

  Attributes attributes{{"stride", Integers{2, 1}}, {"padding", Integers{1, 1}}, {"dilation", Integers{1, 2}}, {"groups", kOne}};
  ops::set_slot(attributes, {.first_row = 3, .shape = {6, 5, 2, 2}, .bits = grid.bits});
  Attributes for_input = attributes, for_weight = attributes;
  for_input.set("input_shape", Integers{3, 5, 7, 6});
  for_weight.set("nonzeros", kNonzeros);
  const Tensor x = make({3, 5, 7, 6}), dy = make({3, 6, 4, 6});
  cases.push_back({&ops::sparse_conv2d, {x, values, columns, rows}, attributes});
  cases.push_back({&ops::sparse_conv2d, {x, values, columns, rows, make({6})}, attributes});
  cases.push_back({&ops::sparse_conv2d_grad_input, {dy, values, columns, rows}, for_input});
  cases.push_back({&ops::sparse_conv2d_grad_weight, {dy, x, columns, rows}, for_weight});

  Attributes whole{{"tensor_rows", grid.rows}, {"tensor_columns", grid.columns}, {"bits", std::int64_t{grid.bits}}};
  Attributes pattern = whole;
  pattern.set("tensor_nonzeros", nonzeros);
  cases.push_back({&ops::init_sparse_pattern, {columns, rows, scalars}, pattern});
  Attributes initial{{"spread", 0.1}, {"uniform", kOne}, {"key", kOne}};
  ops::set_slot(initial, {.first_row = 3, .shape = {6, 5, 2, 2}, .bits = grid.bits});
  cases.push_back({&ops::init_sparse, {values, columns, rows, scalars}, initial});
  const Tensor threshold(ops::sparse_threshold_type(), {0.3});
  for (const std::int64_t per_tensor : {0, 1}) {
    Attributes rewire = whole;
    rewire.set("target", kOne * 10);
    rewire.set("per_tensor", per_tensor);
    cases.push_back({&ops::rewire, {values, columns, rows, threshold, scalars, momentum}, rewire});
  }
}

}  // namespace

std::vector<Case> all_cases(DType dtype) {
  Maker make(dtype);
  std::vector<Case> cases;
  add_convolutions(cases, make);
  add_norms(cases, make);
  add_elementwise(cases, make);
  add_pools(cases, make);
  add_ends(cases, make);
  add_sequences(cases, make);
  add_attention(cases, make);
  add_cross_attention(cases, make);
  add_attention_step(cases, make);
  add_sequence_convolutions(cases, make);
  add_linear_cross_entropy(cases, make);
  add_sparse(cases, make);
  return cases;
}

}  // namespace snug::backends
