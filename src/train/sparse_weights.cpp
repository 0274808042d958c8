#include "train/sparse_weights.h"

#include <cstring>

#include "backends/sparse_store.h"
#include "ops/sparse.h"
#include "train/weights_tensors.h"

namespace snug::train {

namespace {

constexpr std::string_view kPrefix = "sparse.";

template <typename T>
std::vector<T> read_all(const Session& session, std::string_view name) {
  const Program& program = session.plan().program;
  const StateId id = program.find_state(name);
  std::vector<T> values(static_cast<std::size_t>(program.state(id).type.bytes().count()) / sizeof(T));
  session.read_logical(id, std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace

bool is_sparse_store(const Program& program, const State& state) {
  return state.name.starts_with(kPrefix) && !ops::sparse_tensors(program).empty();
}

std::vector<TensorInfo> sparse_tensor_infos(const Program& program) {
  std::vector<TensorInfo> infos;
  const StateId weight = program.find_state("sparse.weight");
  for (const ops::NamedSlot& tensor : ops::sparse_tensors(program)) {
    State dense = program.state(weight);
    dense.name = tensor.name;
    dense.type.shape = tensor.slot.shape;
    infos.push_back(tensor_of(dense));
  }
  return infos;
}

void read_sparse_tensor(const Session& session, std::size_t index, const std::function<void(std::span<const std::byte>)>& write) {
  const Program& program = session.plan().program;
  const ops::SparseSlot slot = ops::sparse_tensors(program)[index].slot;
  const auto values = read_all<std::byte>(session, "sparse.weight");
  const auto columns = read_all<std::uint8_t>(session, "sparse.columns");
  const auto rows = read_all<std::int32_t>(session, "sparse.rows");
  const auto size = static_cast<std::size_t>(bits_per_element(program.state(program.find_state("sparse.weight")).type.dtype)) / 8;
  std::vector<std::byte> row(static_cast<std::size_t>(slot.columns()) * size);
  for (std::int64_t r = 0; r < slot.rows(); ++r) {
    std::ranges::fill(row, std::byte{0});
    const auto at = static_cast<std::size_t>(slot.first_row + r);
    for (std::int32_t k = rows[at]; k < rows[at + 1]; ++k) {
      const std::int64_t element = slot.logical_element(0, backends::column_at(columns.data(), slot.bits, k));
      std::memcpy(row.data() + static_cast<std::size_t>(element) * size, values.data() + static_cast<std::size_t>(k) * size,
                  size);
    }
    write(row);
  }
}

}  // namespace snug::train
