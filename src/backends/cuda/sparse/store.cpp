#include "backends/cuda/sparse/store.h"

#include <limits>

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/sparse/operands.h"

namespace snug::backends::cuda {

namespace {

std::uint32_t narrowed(std::int64_t number) { return static_cast<std::uint32_t>(number); }

// Places of a tensor are counted in 31 bits.
bool is_too_large(const ops::SparseGrid& grid) {
  for (std::size_t t = 0; t < grid.rows.size(); ++t) {
    if (grid.elements(t) > std::numeric_limits<std::int32_t>::max()) return true;
  }
  return false;
}

// ---- (columns, rows, scalars) -> columns, rows

std::unique_ptr<BoundKernel> bind_pattern(const Call& call) {
  const auto grid = ops::SparseGrid::from(call.attributes());
  const std::vector<std::int64_t>& nonzeros = call.attributes().integers("tensor_nonzeros");
  std::vector<launch::PatternTensor> tensors;
  std::int64_t place = 0;
  std::int64_t value = 0;
  std::int64_t row = 0;
  for (std::size_t t = 0; t < grid.rows.size(); ++t) {
    tensors.push_back({.first_place = static_cast<std::uint64_t>(place),
                       .first_value = narrowed(value),
                       .nonzeros = narrowed(nonzeros[t]),
                       .first_row = narrowed(row),
                       .rows = narrowed(grid.rows[t]),
                       .columns = narrowed(grid.columns[t])});
    place += grid.elements(t);
    value += nonzeros[t];
    row += grid.rows[t];
  }
  return call.launch([tensors = std::move(tensors), scalars = call.scalars(2), bits = grid.bits,
                      columns = call.out<std::uint32_t>(0), rows = call.out<std::int32_t>(1),
                      bytes = static_cast<std::size_t>(call.output_type(0).bytes().count())](cudaStream_t stream) {
    SNUG_CUDA_CALL(cudaMemsetAsync(columns, 0, bytes, stream));
    launch::sparse_pattern(stream, tensors, scalars, bits, columns, rows);
  });
}

// ---- (values, columns, rows, scalars) -> values

template <typename T>
std::unique_ptr<BoundKernel> bind_values(const Call& call) {
  const Attributes& attributes = call.attributes();
  const auto slot = ops::SparseSlot::from(attributes);
  const launch::InitialValues initial{.key = static_cast<std::uint64_t>(attributes.integer("key")),
                                      .spread = attributes.real("spread"),
                                      .uniform = attributes.integer("uniform") != 0,
                                      .taps = narrowed(slot.shape[2] * slot.shape[3]),
                                      .channels = narrowed(slot.shape[1])};
  return call.launch([bring = BringOver(call, 0, 0), pattern = pattern_of(call, 1), initial, scalars = call.scalars(3),
                      values = call.out<T>(0)](cudaStream_t stream) {
    bring(stream);
    launch::sparse_values<T>(stream, pattern, initial, scalars, values);
  });
}

// ---- (values, columns, rows, threshold, scalars, momentum?) -> values, columns, rows, threshold, pruned, momentum

template <typename T>
std::unique_ptr<BoundKernel> bind_rewire(const Call& call) {
  const auto grid = ops::SparseGrid::from(call.attributes());
  std::vector<launch::RewireTensor> tensors;
  std::int64_t place = 0;
  std::int64_t row = 0;
  for (std::size_t t = 0; t < grid.rows.size(); ++t) {
    tensors.push_back({.first_place = static_cast<std::uint64_t>(place),
                       .first_row = narrowed(row),
                       .rows = narrowed(grid.rows[t]),
                       .columns = narrowed(grid.columns[t])});
    place += grid.elements(t);
    row += grid.rows[t];
  }
  const launch::RewireOperands operands{.values = call.out<T>(0),
                                        .columns = call.out<std::uint32_t>(1),
                                        .rows = call.out<std::int32_t>(2),
                                        .threshold = call.out<double>(3),
                                        .scalars = call.scalars(4),
                                        .pruned = call.out<double>(4)};
  const launch::RewireConstants constants{.nonzeros = narrowed(call.elements()),
                                          .target = call.attributes().integer("target"),
                                          .bits = grid.bits,
                                          .per_tensor = call.attributes().integer("per_tensor") != 0};
  std::vector<BringOver> store;
  for (std::size_t i = 0; i < 4; ++i) store.emplace_back(call, i, i);
  return call.launch([store = std::move(store), tensors = std::move(tensors), operands, constants,
                      scratch = call.workspace<std::byte>(),
                      momentum = call.input_count() == 6 ? call.out<T>(5) : nullptr](cudaStream_t stream) {
    for (const BringOver& bring : store) bring(stream);
    launch::sparse_rewire<T>(stream, tensors, operands, constants, scratch);
    if (momentum != nullptr) SNUG_CUDA_CALL(cudaMemsetAsync(momentum, 0, constants.nonzeros * sizeof(T), stream));
  });
}

Bytes rewire_workspace(const KernelQuery& query) {
  return Bytes(static_cast<std::int64_t>(launch::rewire_scratch(query.attributes.integers("tensor_rows").size())));
}

constexpr Signature kPattern{.inputs = {Element::packed, Element::index, Element::scalars},
                             .outputs = {Element::packed, Element::index}};
constexpr Signature kValues{.inputs = {Element::real, Element::packed, Element::index, Element::scalars}};
constexpr Signature kRewire{
    .inputs = {Element::real, Element::packed, Element::index, Element::metrics, Element::scalars, Element::real},
    .outputs = {Element::real, Element::packed, Element::index, Element::metrics, Element::metrics, Element::real}};

template <Signature Operands, WorkspaceOf Workspace>
KernelMatch match_grid(const KernelQuery& query) {
  if (is_too_large(ops::SparseGrid::from(query.attributes))) return Refuse{"a tensor has at most 2^31 - 1 places here"};
  return match_operands(Operands, Workspace, query);
}

template <auto BinderOf, Signature Operands, WorkspaceOf Workspace = no_workspace>
consteval KernelDef define_of_grid(std::string_view name) {
  KernelDef kernel = define<BinderOf, Operands, Workspace>(name);
  kernel.match = match_grid<Operands, Workspace>;
  return kernel;
}

}  // namespace

constinit const KernelDef init_sparse_pattern = define_of_grid<bind_pattern, kPattern>("cuda_init_sparse_pattern");
constinit const KernelDef init_sparse = define<[]<typename T>() { return bind_values<T>; }, kValues>("cuda_init_sparse");
constinit const KernelDef rewire =
    define_of_grid<[]<typename T>() { return bind_rewire<T>; }, kRewire, rewire_workspace>("cuda_rewire");

}  // namespace snug::backends::cuda
