// Holds a backend's kernels against the reference, op by op and on whole small models, in each dtype they store values in.
//
//   for (const OpCase& test : op_cases()) EXPECT_EQ(compare(backend, test, DType::f16).complaints, Nothing);
//
// Written for any Backend: the host's memory is not assumed, only what Device and Arena offer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/kernel.h"
#include "ir/program.h"
#include "ir/scalars.h"

namespace snug::conformance {

// An operand: what type it has, and which numbers it gets.
struct OperandSpec {
  enum class Kind {
    real,       // of the dtype under test
    statistic,  // f32 where the dtype is narrower
    scalars,
    labels,  // i32
    bytes,   // u8
    bits,
    argmax,  // 4 bits, or 8 when `high` is more than 16
    wide,    // f64, whatever the dtype under test
    single,  // f32, whatever the dtype under test
    half,    // f16, whatever the dtype under test
  };
  Kind kind = Kind::real;
  Shape shape = {};
  double low = -1, high = 1;  // uniform in [low, high); whole numbers for labels, bytes, bits and argmax
  Scalars scalars = {};
  bool row_major = false;            // rank 4 is channels-last otherwise
  std::vector<double> numbers = {};  // exactly these, where they are given
  bool on_host = false;              // in host memory
};

struct OpCase {
  std::string name;
  const OpDef* op;
  std::vector<OperandSpec> operands;
  Attributes attributes = {};
  // How many numbers of size one are summed up on the way to an element: the allowed error grows with it.
  double terms = 8;
  // The size of what a kernel may round to the stored type once more before its result: a product before its bias.
  double rounded_on_the_way = 0;
  bool host_only = false;  // the CUDA backend has no kernel for it
};

std::vector<OpCase> op_cases();
// One for each of `count` rows: the first, the last and a middle one of `most`, some that padding may have, then others.
OperandSpec positions_of_rows(std::int64_t count, std::int64_t most);
// The lists behind it, one a file.
std::vector<OpCase> product_cases();
std::vector<OpCase> norm_cases();
std::vector<OpCase> other_cases();
std::vector<OpCase> update_cases();
std::vector<OpCase> pack_cases();
std::vector<OpCase> sparse_cases();
std::vector<OpCase> sequence_cases();
std::vector<OpCase> attention_cases();
std::vector<OpCase> dynamic_conv_cases();
// The convolutions of WRN-28-2, on two small images, with so many of their weights.
std::vector<OpCase> sparse_wrn_cases(double density);

struct Comparison {
  std::string refusal;                  // the backend has no kernel for it; nothing was compared
  std::string kernel;                   // what was compared
  std::vector<std::string> complaints;  // empty: conforms
  double worst = 0;                     // largest error, in units of what is allowed
  bool accumulates = false;             // it has a kernel that adds to a sum
};

// Runs the case by the reference in f64 and by the backend in `dtype`, on the same numbers: every element must be there and
// close, nothing else may be written, the same call must give the same bits again (the second and third time, a GPU replays a
// graph), and so must every in-place form that the op promises; a kernel that accumulates must give the bits of adding
// afterwards.
Comparison compare(const Backend& backend, const OpCase& test, DType dtype);

// A whole model: gradients after forward and backward of one microbatch, against a reference that stores what the model stores.
struct ModelCase {
  std::string name;
  std::function<Program(DType)> build;
  std::int64_t valid = 0;  // examples that are not padding; 0: all
};

std::vector<ModelCase> model_cases();

struct ModelComparison {
  std::vector<std::string> complaints;
  double worst_error = 0;  // largest |got - expected| / |expected| of a gradient, both as vectors
  std::string worst_place;
};

// `tolerance`: of worst_error.
ModelComparison compare(const Backend& backend, const ModelCase& test, DType dtype, double tolerance);

}  // namespace snug::conformance
