// A model being trained: a plan, the arena it runs in, and the step loop over microbatches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "ir/kernel.h"
#include "ir/loss.h"
#include "plan/plan.h"
#include "runtime/executor.h"
#include "train/logical_order.h"
#include "train/loss_scale.h"

namespace snug::train {

// Examples as they lie in a data set: for each input the elements of one example after the other (for images N,H,W,C).
struct Examples {
  std::span<const data::NamedBytes> inputs;  // in any order
  std::size_t count = 0;
};

struct Result {
  double loss = 0;    // weighted mean over the rows of the loss
  double score = 0;   // sum over the rows of the loss's second metric (LossFacts::metrics)
  double weight = 0;  // of all rows; that of a row is 1 where the model takes no weights
  std::int64_t examples = 0;

  double mean_score() const { return weight > 0 ? score / weight : 0; }
  // The metric by which weights are ranked.
  double ranking_metric(const LossFacts& facts) const { return facts.ranks_by == 0 ? loss : mean_score(); }
  bool skipped = false;  // the loss was not finite: the step left weights and optimizer as they were
  // Loss or gradients were not finite, the step was skipped, and the loss scale is now smaller. Only with dynamic loss scaling.
  bool overflowed = false;
};

// Where a new session's weights come from.
enum class Start : std::uint8_t {
  drawn,      // all from the seed
  from_file,  // some or all from a file (import_weights, load_snapshot); only the others are drawn
};

class Session {
 public:
  Session(Plan plan, Backend backend, std::uint64_t seed, Start start = Start::drawn);

  // The second half of Start::from_file, needed before the first step: gives all states but the `given` ones their initial
  // values, with the bits that a drawn session has; the given ones must be written afterwards. Does nothing in a session that
  // already has its initial values.
  void initialize_all_but(std::span<const StateId> given);

  // One step on 1 to `batch` examples, microbatch after microbatch. Each row of the loss counts 1/n of the n given ones, or its
  // weight / the sum of weights where the model takes weights; the last microbatch may be short. UserError when the batch does
  // not have the inputs of the program, each with as many bytes as its examples take.
  //
  // A step that goes wrong does not change the weights. The loss is known before the update runs; when it is not finite, the
  // update is told to skip (Scalars::skip_update) and only clears the gradients. In programs that clip, the update skips itself
  // when the gradients' norm is not finite: see gradient_norm(). Either way the step counts, and training can continue. Running
  // statistics of batch norm are updated in the forward pass and not restored, as in PyTorch.
  Result train_step(const Examples& examples);
  // Any number of examples; weights, statistics and counters stay as they are.
  Result evaluate(const Examples& examples);

  // The next row of each example, at most a microbatch of them, in a program that takes rows one after the other
  // (passes/model/decode_only.h). Among the inputs are `positions`, i32, one each.
  void decode(const Examples& examples);

  // Runs the program's section `periodic`, if it has one, which for example moves the pattern of sparse weights; keyed by seed
  // and step.
  void run_periodic();

  void set_learning_rate(double learning_rate) { learning_rate_ = learning_rate; }
  // Gradients are computed this many times larger and divided before the update: small ones survive in f16. Reported losses are
  // not scaled. A power of two changes no bit as long as nothing over- or underflows. Fixed, unless it is dynamic: then it is
  // halved after a step whose loss or gradients are not finite, and doubled after `grow_after` others.
  void set_loss_scale(double loss_scale);
  // UserError when the program does not check its gradients (UpdateOptions::finds_overflow or clip_norm).
  void follow_gradients(std::uint64_t grow_after = LossScale::kGrowAfter);
  bool follows_gradients() const { return grow_after_ > 0; }
  const LossScale& loss_scale() const { return loss_scale_; }
  // The norm to which all gradients together are clipped, as in torch.nn.utils.clip_grad_norm_; infinity only measures it. Needed
  // before the first step where the program clips (UpdateOptions::clip_norm above 0), not possible elsewhere.
  void set_clip_norm(double clip_norm);
  // Whether the program measures the norm of its gradients.
  bool clips() const { return gradient_norm_.valid(); }
  // The norm before clipping in the last step; not finite when that step's update was skipped because of it. Waits for the
  // update.
  double gradient_norm() const;
  std::uint64_t step() const { return step_; }
  // The program's loss: which states are its inputs, the names of its metrics. Without a node where the program only decodes.
  const ProgramLoss& loss() const { return loss_; }

  // What a session has beside its states; with these restored it continues bit-exactly.
  struct Counters {
    std::uint64_t seed = 0;
    std::uint64_t step = 0;
    double learning_rate = 0.1;
    LossScale loss_scale = {.scale = 1};

    friend bool operator==(const Counters&, const Counters&) = default;
  };
  Counters counters() const;
  void restore(const Counters& counters);

  // A state's elements as they are stored, in logical order (row-major) whatever its layout; exactly `logical_bytes` of them.
  std::size_t logical_bytes(StateId id) const;
  void read_logical(StateId id, std::span<std::byte> target) const;
  void write_logical(StateId id, std::span<const std::byte> source);
  // A range of them, from byte `begin` on.
  void read_logical_part(StateId id, std::size_t begin, std::span<std::byte> target) const;
  // The same in pieces of at most kPieceBytes, so that no state, however large and in whatever layout, is copied as a whole.
  // `fill` must fill what it is given. Call derive() when everything is written.
  void read_logical_in_pieces(StateId id, const std::function<void(std::span<const std::byte>)>& use) const;
  void write_logical_in_pieces(StateId id, const std::function<void(std::span<std::byte>)>& fill);
  // A range of them so.
  void read_logical_in_pieces(StateId id, std::size_t begin, std::size_t size,
                              const std::function<void(std::span<const std::byte>)>& use) const;
  void write_logical_in_pieces(StateId id, std::size_t begin, std::size_t size,
                               const std::function<void(std::span<std::byte>)>& fill);

  // A state's values as doubles in logical order, whatever its layout and floating-point type.
  std::vector<double> read_state(const std::string& name) const;
  void write_state(const std::string& name, std::span<const double> values);
  // As floats, one piece at a time: no copy is made but the one that is returned.
  std::vector<float> read_floats(const std::string& name) const;
  void write_floats(const std::string& name, std::span<const float> values);
  // Renews the states that are copies of others (the program's section `derive`, if it has one). write_state and write_logical do
  // this; after writing parameters in pieces or through the executor, call it.
  void derive();

  Executor& executor() { return *executor_; }
  const Plan& plan() const { return *plan_; }

 private:
  // What the host writes before a microbatch runs.
  struct StagedInput {
    StateId state;
    std::string_view name;  // the state's
    std::size_t example_bytes = 0;
  };
  // The section for that many examples: the one of the smallest shape that has room for them.
  SectionId section_for(SectionKind kind, std::size_t examples) const;
  // Runs `kind` over the examples in microbatches and returns the summed metrics.
  Result run(SectionKind kind, const Examples& examples, double total_weight);
  void check_initialized() const;
  void stage(const Examples& examples, std::size_t first, std::size_t count);
  void check(const Examples& examples) const;
  std::span<const std::byte> bytes_of(const Examples& examples, StateId input) const;
  double count_labeled_rows(const Examples& examples) const;
  double total_weight(const Examples& examples) const;
  std::string input_names() const;
  LogicalOrder logical_order(StateId id) const;
  StateId required_state(std::string_view name) const;
  StateId floating_state(const std::string& name) const;
  void adjust_loss_scale(Result& result);

  // The executor keeps references to both; behind pointers, they stay valid when a session moves.
  std::unique_ptr<const Plan> plan_;
  std::unique_ptr<const Backend> backend_;
  std::unique_ptr<Executor> executor_;
  ProgramLoss loss_;
  std::vector<StagedInput> inputs_;
  StateId gradient_norm_;  // none() when the program does not clip
  std::uint64_t seed_;
  bool is_initialized_ = false;
  std::uint64_t step_ = 0;
  double learning_rate_ = 0.1;
  LossScale loss_scale_ = {.scale = 1};
  std::uint64_t grow_after_ = 0;  // 0: the loss scale is fixed
  float clip_norm_ = 0;           // 0: not set
};

}  // namespace snug::train
