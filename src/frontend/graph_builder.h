// Builds a model layer by layer: a program with the sections `init` and `forward`, in f32. The model zoo, the public API and
// importers all use it.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "frontend/initializer.h"
#include "ir/builder.h"
#include "ir/example_rows.h"
#include <snug/model.h>

namespace snug::frontend {

class GraphBuilder {
 public:
  // `statistics_group`: examples whose batch-norm statistics are taken together, unless a layer overrides it; 0: all of the
  // microbatch. With groups of b a microbatch gives the same results as microbatches of b.
  GraphBuilder(std::string name, std::int64_t batch, std::int64_t statistics_group = 0);
  // The section builders point into the program beside them.
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  // Inputs. Images are staged as bytes and normalized by an op; features are staged in the type that is computed with. A layer's
  // result has its input's layout; convolutions and pools are made for channels-last ones.
  ValueId images(const ImageOptions& options);
  ValueId features(const Shape& shape_of_one_example, const Layout& layout = Layout::row_major());
  // Any other. Its leading dimension is made of the examples of the microbatch, one or several rows each.
  ValueId input(const std::string& name, const Type& type);

  // Layers. Each is named; its parameters are called <name>.weight, <name>.bias and so on.
  ValueId conv2d(const std::string& name, ValueId x, const Conv2dOptions& options);
  ValueId batch_norm(const std::string& name, ValueId x, const BatchNormOptions& options = {});
  ValueId group_norm(const std::string& name, ValueId x, std::int64_t groups, double epsilon = 1e-5);
  ValueId relu(const std::string& name, ValueId x);
  ValueId add(const std::string& name, ValueId a, ValueId b);
  ValueId max_pool(const std::string& name, ValueId x, const PoolOptions& options = {});
  ValueId avg_pool(const std::string& name, ValueId x, const PoolOptions& options = {});
  ValueId global_avg_pool(const std::string& name, ValueId x);
  // Identity shortcut: every stride-th pixel, new channels zero. The input itself when nothing changes.
  ValueId shortcut(const std::string& name, ValueId x, std::int64_t channels, std::int64_t stride);
  // Of the last dimension, whatever stands before it.
  ValueId linear(const std::string& name, ValueId x, std::int64_t out_features, const LinearOptions& options = {});
  ValueId gelu(const std::string& name, ValueId x, bool by_tanh = true);
  ValueId silu(const std::string& name, ValueId x);
  ValueId dropout(const std::string& name, ValueId x, double probability);
  // [N, everything else] in logical (N,C,H,W) order.
  ValueId flatten(const std::string& name, ValueId x);
  ValueId reshape(const std::string& name, ValueId x, const Shape& shape);
  // Layers of sequences. Their values have a row for each token: [examples * length, features].
  // Token numbers, the input "tokens".
  ValueId tokens(std::int64_t length);
  ValueId embedding(const std::string& name, ValueId tokens, ValueId table);
  // Adds the row of `table` [positions, features] that belongs to a token's position in its example.
  ValueId add_positions(const std::string& name, ValueId x, ValueId table);
  ValueId layer_norm(const std::string& name, ValueId x, double epsilon = 1e-5);
  ValueId rms_norm(const std::string& name, ValueId x, double epsilon = 1e-6);
  ValueId gated_linear_unit(const std::string& name, ValueId x, Gate gate = Gate::silu);
  // Rotates queries and keys of [.., (heads + 2 kv_heads) * size] by their positions.
  ValueId rotary(const std::string& name, ValueId qkv, const AttentionOptions& options, double base = 10000);
  ValueId attention(const std::string& name, ValueId qkv, const AttentionOptions& options);
  // Queries [.., heads * size] with keys and values [.., 2 kv_heads * size] that come from elsewhere, of which each sees all.
  ValueId cross_attention(const std::string& name, ValueId q, ValueId kv, const AttentionOptions& options);
  // Kernels that all rows share, <name>.weight, or of each row's own, from a linear layer without bias, <name>.weight_linear.
  ValueId lightweight_conv(const std::string& name, ValueId x, const SequenceConvOptions& options);
  ValueId dynamic_conv(const std::string& name, ValueId x, const SequenceConvOptions& options);
  // A linear layer to a gate and as many columns as x has, the gated linear unit, the convolution, and a linear layer.
  ValueId dynamic_conv_block(const std::string& name, ValueId x, const SequenceConvOptions& options);

  // Any op with plain inputs; `name` becomes its layer and the name of its first output.
  std::vector<ValueId> emit(const std::string& name, const OpDef& op, std::vector<ValueId> inputs, Attributes attributes = {});

  // A trainable state, for ops that the layers above do not cover.
  ValueId parameter(const std::string& name, const Type& type, Initializer initializer);
  // A state that is not trained by gradients.
  ValueId statistic(const std::string& name, const Type& type, Initializer initializer);
  ValueId scalars() { return read(program_.scalars); }

  // Ends the model: softmax cross-entropy of logits [rows,K] with labels i32[rows], added to the metrics. An example may have
  // several rows. All have equal weight, or those in `weights`, f32[rows].
  void softmax_cross_entropy(ValueId logits, ValueId labels, ValueId weights, double label_smoothing = 0);
  // The same with staged labels, the input "labels".
  void softmax_cross_entropy(ValueId logits, double label_smoothing = 0);
  // Ends a language model: the classifier x weight^T and the softmax cross-entropy of its logits with the staged labels, the
  // input "labels". The logits never exist all at once. A label that is no class, such as -100, is ignored.
  void linear_cross_entropy(const std::string& name, ValueId x, ValueId weight, double label_smoothing = 0);
  // Ends the model with a loss op of the caller's.
  void loss(const std::string& name, const OpDef& op, std::vector<ValueId> inputs, Attributes attributes = {});

  const Type& type_of(ValueId id) const { return builder_.value(id).type; }
  std::size_t value_count() const { return forward_.values.size(); }

  // UserError when the model has no loss. The builder is spent.
  Program finish() &&;

 private:
  StateId add_state(const std::string& name, const Type& type, Role role, bool trainable, Initializer initializer);
  void emit_initial_value(StateId id, const Initializer& initializer);
  ValueId read(StateId id) { return builder_.read(id); }
  // The kernels of a sequence's convolution [.., taps] as they are used: each one's taps sum to 1, before some are dropped.
  ValueId weigh_taps(const std::string& layer, ValueId taps, const SequenceConvOptions& options);
  Attributes sequence_conv_attributes(const std::string& layer, ValueId x, const SequenceConvOptions& options) const;
  // Rows of the leading dimension that each example of the microbatch has; UserError when it is not made of these.
  std::int64_t rows_of_each_example(const std::string& layer, const Type& type) const;

  std::int64_t batch() const { return program_.microbatch; }

  Program program_;
  Section init_{.kind = SectionKind::init, .values = {}, .nodes = {}};
  Section forward_{.kind = SectionKind::forward, .values = {}, .nodes = {}};
  std::int64_t statistics_group_;
  SectionBuilder init_builder_;
  SectionBuilder builder_;  // of the section forward
  ExampleRows example_rows_;
  bool has_loss_ = false;
  std::unordered_set<std::string> state_names_;
  std::int64_t random_keys_ = 0;  // each dropout layer has its own random stream
};

// Parameters whose names begin with one of the prefixes keep their values: no gradient, no momentum. Batch norm still uses the
// statistics of the batch and updates its running ones, frozen or not, as PyTorch's does with requires_grad=False. UserError,
// with the nearest names, when a prefix matches none.
void freeze(Program& model, const std::vector<std::string>& prefixes);

// Spreads a share of each label over all classes. UserError when the model's loss cannot.
void smooth_labels(Program& model, double share);

std::int64_t parameter_count(const Program& model);

}  // namespace snug::frontend
