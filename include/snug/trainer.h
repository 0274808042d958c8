// Training inside one arena whose size is known before the first step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <snug/model.h>

namespace snug {

struct TrainingOptions {
  std::int64_t batch = 32;           // examples a step
  std::int64_t budget_bytes = 0;     // the arena is not larger; 0: whatever the batch takes
  std::int64_t microbatch = 0;       // examples in memory at a time; 0: as many of the batch as fit the budget
  std::int64_t min_microbatch = 10;  // models with batch norm are not split below this by themselves
  // How far a plan may go for the budget: "exact" (the same bits), "reassociated" (sums in another order), "microbatch"
  // (batch-norm statistics of parts of the batch), "precision" (stored in bf16 where nothing else is asked for), "compressed"
  // (activations are stored in 4 bits per element until backward). Not yet "sparse", which needs a training loop that rewires.
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
  // Node times that plans are compared and steps predicted by: a file that `snug plan --measure-costs` wrote, "machine" for this
  // machine's own if it was measured, or "none" for a fixed table.
  std::string costs = "none";
  double learning_rate = 0.1;
  double momentum = 0.9;
  double weight_decay = 5e-4;
  bool nesterov = true;
  int momentum_bits = 32;  // 8: the momentum of large parameters is kept in codes of 8 bits
  double clip_norm = 0;    // above 0: the gradients' total norm is clipped to it
  std::uint64_t seed = 0;
  int threads = 0;        // 0: as many as the machine has cores
  bool checking = false;  // red zones and poison around every value: slow, and gives the same bits
};

// Where the bytes go, before anything runs.
struct MemorySummary {
  std::int64_t planned_peak_bytes = 0;  // the arena's size
  std::int64_t bound_bytes = 0;         // what the lifetimes of values demand of any placement
  std::int64_t plain_peak_bytes = 0;    // what the whole batch at once would take; 0 when a microbatch was asked for
  std::int64_t microbatch = 0;          // examples in memory at a time
  int compress_bits = 0;                // per element of activations stored until backward; 0: as they are
  std::string checkpoint;               // what backward computes again; "none": nothing
  std::string precision;                // what values are stored in
  struct {
    std::int64_t model = 0, gradient = 0, optimizer = 0, activation = 0, workspace = 0, input = 0;
  } by_class;  // at the fullest moment
};

struct StepResult {
  double loss = 0;      // mean over the examples
  double accuracy = 0;  // share of examples whose largest logit is the label
};

class Trainer {
 public:
  // DoesNotFit, naming the smallest budget that would do, when the budget is too small.
  Trainer(const Model& model, const TrainingOptions& options);
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
  // Loss and accuracy of any number of examples; changes nothing.
  StepResult evaluate(std::span<const std::uint8_t> images, std::span<const std::int32_t> labels);

  void set_learning_rate(double learning_rate);

  // Values in logical order (O,I,H,W for convolutions), whatever their layout in memory.
  std::vector<std::string> parameter_names() const;
  std::vector<float> parameter(const std::string& name) const;
  void set_parameter(const std::string& name, std::span<const float> values);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace snug
