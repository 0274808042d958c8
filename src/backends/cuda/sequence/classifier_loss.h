// Softmax cross-entropy of rows of logits that exist only in a workspace, in float, and their gradients in the same bytes. T, of
// the gradients: float, __half or __nv_bfloat16.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "ir/scalars.h"

namespace snug::backends::cuda::launch {

// What a row adds to the metrics, and what its gradient needs.
struct RowLoss {
  double loss;                     // times the weight
  float weight, score;             // 0: the row does not count
  float log_sum_exp, rounded_off;  // together its log_sum_exp
};

struct ClassifierRows {
  const std::int32_t* labels;
  const float* weights;  // of the rows; nullptr: all are 1
  const Scalars* scalars;
  double smoothing;
  std::uint32_t rows, classes;
  std::uint32_t rows_per_example;
};

// Some rows of logits from row `first_row` on; a row of floats begins every `stride`.
struct LogitRows {
  float* logits;
  std::uint32_t first_row, count, stride;
};

// The losses of these rows, whose logits are those of all classes.
void classifier_losses(cudaStream_t stream, const LogitRows& logits, const ClassifierRows& rows, RowLoss* losses);
// The same, and then the logits' gradients in their place: those of a row begin where the row does.
template <typename T>
void classifier_losses_and_gradients(cudaStream_t stream, const LogitRows& logits, const ClassifierRows& rows, RowLoss* losses);
// Gradients alone, of the classes from `first_class` on, when all losses are known.
template <typename T>
void classifier_gradients(cudaStream_t stream, const LogitRows& logits, std::uint32_t first_class, std::uint32_t classes,
                          const ClassifierRows& rows, const RowLoss* losses);
// Summed in an order that only the number of rows decides.
void classifier_metrics(cudaStream_t stream, const RowLoss* losses, const ClassifierRows& rows, Metrics* metrics);

// result = sum rounded to T, added to `addend` where there is one.
template <typename T>
void round_sum(cudaStream_t stream, const float* sum, const T* addend, T* result, std::int64_t count);

}  // namespace snug::backends::cuda::launch
