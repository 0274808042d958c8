// Placement problems that look like training steps of residual networks: values stored for backward, gradients, accumulations,
// scratch, and, with checkpointing, values computed again. Only lifetimes and sizes: no tensor exists.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "placement/problem.h"

namespace snug::placement {

// Records which value is made and read at which step.
class Tape {
 public:
  using Value = std::size_t;

  // One step: reads values, makes one, and needs scratch while it runs.
  Value run(const std::vector<Value>& reads, std::int64_t output_bytes, std::int64_t scratch_bytes = 0) {
    for (const Value value : reads) problem_.items[value].end = step_ + 1;
    if (scratch_bytes > 0) problem_.items.push_back({Bytes(scratch_bytes), step_, step_ + 1});
    problem_.items.push_back({Bytes(output_bytes), step_, step_ + 1});
    ++step_;
    return problem_.items.size() - 1;
  }

  // One step that makes nothing new, such as adding a weight gradient to its accumulator.
  void read(const std::vector<Value>& reads) {
    for (const Value value : reads) problem_.items[value].end = step_ + 1;
    ++step_;
  }

  const Problem& problem() const { return problem_; }

 private:
  Problem problem_;
  std::int32_t step_ = 0;
};

struct Layer {
  std::int64_t input_bytes = 0;
  std::int64_t output_bytes = 0;
  std::int64_t statistics_bytes = 0;  // of the batch norm before the convolution
  std::int64_t weight_bytes = 0;
  std::int64_t scratch_bytes = 0;
};

// Batch norm + ReLU + convolution, some times over, with a skip around them; `projects` when the skip is a convolution.
struct Block {
  std::vector<Layer> layers;
  bool projects = false;
};

struct Network {
  std::int64_t input_bytes = 0;
  std::vector<Block> blocks;
};

enum class BlockKind { basic, bottleneck };

struct ResNetOptions {
  BlockKind kind = BlockKind::basic;
  std::vector<int> blocks_per_stage = {4, 4, 4};
  std::int64_t batch = 10;
  std::int64_t channels = 16;    // inside the blocks of the first stage
  std::int64_t image_side = 32;  // pixels
  std::int64_t bytes_per_number = 4;
};

inline Network make_resnet(const ResNetOptions& options) {
  const std::int64_t expansion = options.kind == BlockKind::bottleneck ? 4 : 1;
  std::int64_t side = options.image_side;
  std::int64_t width = options.channels;
  std::int64_t channels_in = options.channels;
  const auto activation = [&](std::int64_t channels, std::int64_t at_side) {
    return options.batch * channels * at_side * at_side * options.bytes_per_number;
  };
  Network network{.input_bytes = activation(channels_in, side), .blocks = {}};
  for (std::size_t stage = 0; stage < options.blocks_per_stage.size(); ++stage) {
    for (int i = 0; i < options.blocks_per_stage[stage]; ++i) {
      std::int64_t side_in = side;
      if (stage > 0 && i == 0) side = (side + 1) / 2;
      const std::int64_t channels_out = width * expansion;
      Block block{.layers = {}, .projects = channels_in != channels_out};
      const auto add_layer = [&](std::int64_t from, std::int64_t to, std::int64_t kernel) {
        const std::int64_t weight_bytes = from * to * kernel * kernel * options.bytes_per_number;
        block.layers.push_back({.input_bytes = activation(from, side_in),
                                .output_bytes = activation(to, side),
                                .statistics_bytes = 2 * from * 4,
                                .weight_bytes = weight_bytes,
                                .scratch_bytes = weight_bytes * 2 + 1000 * kernel});
        side_in = side;
      };
      if (options.kind == BlockKind::bottleneck) {
        add_layer(channels_in, width, 1);
        add_layer(width, width, 3);
        add_layer(width, channels_out, 1);
      } else {
        add_layer(channels_in, width, 3);
        add_layer(width, width, 3);
      }
      network.blocks.push_back(block);
      channels_in = channels_out;
    }
    width *= 2;
  }
  return network;
}

// Writes the training step of a network onto a tape.
class TrainingStep {
 public:
  explicit TrainingStep(const Network& network) : network_(network) {}

  // Backward over n blocks computes forward again from `pieces` kept values, and each piece likewise, until a piece has at most
  // `blocks_stored_whole` blocks. With all the blocks stored whole nothing is computed again.
  Problem write(std::size_t blocks_stored_whole, std::size_t pieces) {
    blocks_stored_whole_ = blocks_stored_whole;
    pieces_ = pieces;
    const Tape::Value image = tape_.run({}, network_.input_bytes / 4 + 1);
    const Tape::Value stem = tape_.run({image}, network_.input_bytes, 4096);
    const Tape::Value stem_gradient = backward_of_range(0, network_.blocks.size(), stem, nullptr);
    const Tape::Value weight_gradient = tape_.run({stem_gradient, image}, 1728, 4096);
    tape_.read({weight_gradient});
    return tape_.problem();
  }

 private:
  using Value = Tape::Value;

  // What backward of a block reads.
  struct Stored {
    Value input = 0;
    std::vector<Value> statistics;   // of each layer
    std::vector<Value> activations;  // what each convolution reads
    std::vector<Value> outputs;      // of each convolution
    Value result = 0;
  };

  Stored forward(const Block& block, Value input) {
    Stored stored;
    stored.input = input;
    Value current = input;
    for (const Layer& layer : block.layers) {
      stored.statistics.push_back(tape_.run({current}, layer.statistics_bytes));
      stored.activations.push_back(tape_.run({current, stored.statistics.back()}, layer.input_bytes));
      current = tape_.run({stored.activations.back()}, layer.output_bytes, layer.scratch_bytes);
      stored.outputs.push_back(current);
    }
    const std::int64_t result_bytes = block.layers.back().output_bytes;
    Value skip = input;
    if (block.projects) skip = tape_.run({stored.activations.front()}, result_bytes, block.layers.front().scratch_bytes);
    stored.result = tape_.run({current, skip}, result_bytes);
    return stored;
  }

  Value backward(const Block& block, const Stored& stored, Value gradient) {
    const Value result_gradient = gradient;
    Value projected_gradient = gradient;
    for (std::size_t i = block.layers.size(); i-- > 0;) {
      const Layer& layer = block.layers[i];
      const Value weight_gradient = tape_.run({stored.activations[i], gradient}, layer.weight_bytes, 2 * layer.scratch_bytes);
      tape_.read({weight_gradient});
      Value activation_gradient = tape_.run({gradient}, layer.input_bytes, layer.scratch_bytes);
      if (i == 0 && block.projects) {
        const Value skip_weight_gradient =
            tape_.run({stored.activations[0], result_gradient}, layer.weight_bytes, layer.scratch_bytes);
        tape_.read({skip_weight_gradient});
        projected_gradient = tape_.run({result_gradient}, layer.input_bytes, layer.scratch_bytes);
        activation_gradient = tape_.run({activation_gradient, projected_gradient}, layer.input_bytes);
      }
      const Value before_norm = i == 0 ? stored.input : stored.outputs[i - 1];
      const Value sums = tape_.run({activation_gradient, stored.activations[i], before_norm}, layer.statistics_bytes);
      gradient =
          tape_.run({activation_gradient, stored.activations[i], before_norm, stored.statistics[i], sums}, layer.input_bytes);
    }
    if (block.projects) return gradient;
    return tape_.run({gradient, result_gradient}, block.layers.front().input_bytes);
  }

  // Forward then backward of the blocks [begin, end), from their input and the gradient of their result to the gradient of the
  // input. Without a gradient this is the end of the network: the loss makes it.
  Value backward_of_range(std::size_t begin, std::size_t end, Value input, const Value* result_gradient) {
    const auto start_gradient = [&](Value result) {
      if (result_gradient != nullptr) return *result_gradient;
      return tape_.run({result}, network_.blocks.back().layers.back().output_bytes, 400);
    };
    if (end - begin <= blocks_stored_whole_) {
      std::vector<Stored> stored;
      for (std::size_t i = begin; i < end; ++i) {
        stored.push_back(forward(network_.blocks[i], i == begin ? input : stored.back().result));
      }
      Value gradient = start_gradient(stored.back().result);
      for (std::size_t i = end; i-- > begin;) gradient = backward(network_.blocks[i], stored[i - begin], gradient);
      return gradient;
    }
    const std::size_t piece = (end - begin + pieces_ - 1) / pieces_;
    std::vector<Value> kept;
    Value current = input;
    for (std::size_t i = begin; i < end; ++i) {
      if ((i - begin) % piece == 0) kept.push_back(current);
      // The last piece starts its own forward from its kept input: running it here would be for nothing.
      if (i - begin >= (end - begin - 1) / piece * piece) break;
      current = forward(network_.blocks[i], current).result;
    }
    const Value* next = result_gradient;
    Value gradient = 0;
    for (std::size_t k = kept.size(); k-- > 0;) {
      gradient = backward_of_range(begin + k * piece, std::min(end, begin + (k + 1) * piece), kept[k], next);
      next = &gradient;
    }
    return gradient;
  }

  const Network& network_;
  Tape tape_;
  std::size_t blocks_stored_whole_ = 0;
  std::size_t pieces_ = 0;
};

inline Problem make_training_step(const ResNetOptions& options, std::size_t blocks_stored_whole, std::size_t pieces) {
  const Network network = make_resnet(options);
  return TrainingStep(network).write(blocks_stored_whole, pieces);
}

}  // namespace snug::placement
