// Training inside one arena whose size is known before the first step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <snug/memory.h>
#include <snug/model.h>
#include <snug/recipe.h>

namespace snug {

struct TrainingOptions {
  std::int64_t batch = 32;           // examples a step
  std::int64_t budget_bytes = 0;     // the arena is not larger; 0: whatever the batch takes
  std::int64_t microbatch = 0;       // examples in memory at a time; 0: as many of the batch as fit the budget
  std::int64_t min_microbatch = 10;  // models with batch norm are not split below this by themselves
  // How far a plan may go for the budget: "exact" (the same bits), "reassociated" (sums in another order), "microbatch"
  // (batch-norm statistics of parts of the batch), "precision" (stored in bf16 where nothing else is asked for), "compressed"
  // (activations are stored in 4 bits per element until backward), "sparse" (part of the weights, see `nonzero`).
  std::string allow = "exact,reassociated,microbatch";
  // What weights, gradients, momenta and activations are stored in: "fp32", "bf16" or "fp16". In fp16 the loss scale follows the
  // gradients: a step that overflows is skipped.
  std::string precision = "fp32";
  // How updates of 16 bits are rounded: "nearest" or "stochastic"; empty: stochastic in bf16, which would lose small ones.
  std::string rounding = {};
  // Examples whose batch-norm statistics are taken together; 0: all of the microbatch. A step in groups of b does what one in
  // microbatches of b does, whatever its microbatch, which is then a multiple of the group, or the batch.
  std::int64_t statistics_group = 0;
  // What backward computes again, as --checkpoint has it; empty: nothing, or what the budget asks for.
  std::string checkpoint = {};
  // 8, 4 or 2: activations are stored in so many bits per element until backward; 0: as they are, or as the budget asks for and
  // `allow` permits.
  int compress_bits = 0;
  // "cpu", or "cuda" for an NVIDIA GPU.
  std::string device = "cpu";
  // Share of the convolutions' weights, all but the first, that is stored and trained; their pattern moves when rewire() is
  // called.
  double nonzero = 1;
  // Node times that plans are compared and steps predicted by: a file that `snug plan --measure-costs` wrote, "machine" for this
  // machine's own if it was measured, or "none" for a fixed table.
  std::string costs = "none";
  // "sgd" or "adamw"; empty: adamw for a model whose loss counts tokens, else sgd. What is nothing below is as suits the
  // optimizer, and what is about another one is refused.
  std::string optimizer = {};
  std::optional<double> learning_rate = {};  // sgd 0.1, adamw 3e-4
  std::optional<double> momentum = {};       // sgd: 0.9
  std::optional<double> weight_decay = {};   // sgd 5e-4, adamw 0.01
  std::optional<bool> nesterov = {};         // sgd: yes
  int momentum_bits = 32;                    // 8: sgd's momentum of large parameters is kept in codes of 8 bits
  std::optional<double> beta1 = {};          // adamw: 0.9
  std::optional<double> beta2 = {};          // adamw: 0.999
  std::optional<double> epsilon = {};        // adamw: 1e-8
  std::optional<bool> decay_norms = {};      // adamw: no; whether the weight decay is for parameters of one dimension, too
  std::optional<int> moment_bits = {};       // adamw's moments: 8, 16 or 32; 16 or 32 as suits the precision
  double clip_norm = 0;                      // above 0: the gradients' total norm is clipped to it
  std::uint64_t seed = 0;
  int threads = 0;        // 0: as many as the machine has cores
  bool checking = false;  // red zones and poison around every value: slow, and gives the same bits
};

struct StepResult {
  double loss = 0;       // mean over the examples
  double accuracy = 0;   // share of examples whose largest logit is the label
  bool skipped = false;  // numbers were not finite: weights and optimizer are as before the step
};

// The examples of one input of the model, by its name: "images", "features", "labels". Of each example its elements, one after
// the other; images are N,H,W,C.
class Input {
 public:
  enum class Element : std::uint8_t { u8, i32, f32 };

  Input(std::string name, std::span<const std::uint8_t> values) : Input(std::move(name), Element::u8, std::as_bytes(values)) {}
  Input(std::string name, std::span<const std::int32_t> values) : Input(std::move(name), Element::i32, std::as_bytes(values)) {}
  Input(std::string name, std::span<const float> values) : Input(std::move(name), Element::f32, std::as_bytes(values)) {}

  const std::string& name() const { return name_; }
  Element element() const { return element_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  Input(std::string name, Element element, std::span<const std::byte> bytes)
      : name_(std::move(name)), element_(element), bytes_(bytes) {}

  std::string name_;
  Element element_;
  std::span<const std::byte> bytes_;
};

class Trainer {
 public:
  // DoesNotFit, naming the smallest budget that would do, when the budget is too small.
  Trainer(const Model& model, const TrainingOptions& options);
  // The same from a recipe, which says more: offload, fused updates, loss_scale_growth, ... What it says of data, length and
  // schedule is for a Run; here whoever calls train() sees to that. `costs`: as TrainingOptions::costs.
  Trainer(const Model& model, const Recipe& recipe, const std::string& costs = "none");
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  const MemorySummary& memory() const;
  // What a step on a whole batch will take, from TrainingOptions::costs.
  double predicted_step_seconds() const;
  // The highest byte of the arena that any step so far has touched, found by looking and not by planning; a
  // kernel's workspace counts in full. Call
  // `start_measuring` first, then train at least two steps.
  void start_measuring();
  std::int64_t measured_peak_bytes() const;

  // One step on up to `batch` examples: pixels are N,H,W,C bytes, labels 0..classes-1. A smaller batch weighs its examples right.
  StepResult train(std::span<const std::uint8_t> images, std::span<const std::int32_t> labels);
  // The same of a model with other inputs. UserError unless all are there, each of the type that the model takes.
  StepResult train(std::span<const Input> inputs);
  // Loss and accuracy of any number of examples; changes nothing.
  StepResult evaluate(std::span<const std::uint8_t> images, std::span<const std::int32_t> labels);
  StepResult evaluate(std::span<const Input> inputs);

  void set_learning_rate(double learning_rate);
  std::uint64_t steps() const;  // made so far, also before a snapshot that was loaded
  // Moves the pattern of sparse weights: small ones are pruned, and as many others begin at zero.
  void rewire();

  // All that training needs to go on to the same bits: weights, optimizer state, statistics, counters. A snapshot is a
  // safetensors file; loading verifies it first. Any plan for the same model takes it.
  void save_snapshot(const std::string& path) const;
  void load_snapshot(const std::string& path);
  // Weights and running statistics alone, with PyTorch's names, or transformers' for language models. Importing takes a file, an
  // index of shards or a folder, and returns a sentence about what did not come from it; empty: all did.
  void export_weights(const std::string& path) const;
  std::string import_weights(const std::string& path);

  // Values in logical order (O,I,H,W for convolutions), whatever their layout in memory.
  std::vector<std::string> parameter_names() const;
  std::vector<float> parameter(const std::string& name) const;
  void set_parameter(const std::string& name, std::span<const float> values);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace snug
