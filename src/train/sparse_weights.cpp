#include "train/sparse_weights.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "backends/sparse_store.h"
#include "io/weights_tensors.h"
#include "ops/sparse/sparse.h"

namespace snug::train {

namespace {

constexpr std::string_view kPrefix = "sparse.";

// Elements [first, first + count) of a list of the store.
template <typename T>
void read_some(const Session& session, std::string_view list, std::int64_t first, std::int64_t count, std::vector<T>& target) {
  target.resize(static_cast<std::size_t>(count));
  session.read_logical_part(session.plan().program.find_state(list), static_cast<std::size_t>(first) * sizeof(T),
                            std::as_writable_bytes(std::span(target)));
}

}  // namespace

bool is_sparse_store(const Program& program, const State& state) {
  return state.name.starts_with(kPrefix) && !ops::sparse_tensors(program).empty();
}

std::vector<io::TensorInfo> sparse_tensor_infos(const Program& program) {
  std::vector<io::TensorInfo> infos;
  const StateId weight = program.find_state("sparse.weight");
  for (const ops::NamedSlot& tensor : ops::sparse_tensors(program)) {
    State dense = program.state(weight);
    dense.name = tensor.name;
    dense.type.shape = tensor.slot.shape;
    infos.push_back(io::tensor_of(dense));
  }
  return infos;
}

void read_sparse_tensor(const Session& session, std::size_t index, const std::function<void(std::span<const std::byte>)>& write) {
  const Program& program = session.plan().program;
  const ops::SparseSlot slot = ops::sparse_tensors(program)[index].slot;
  const auto size = static_cast<std::int64_t>(io::bytes_per_element(sparse_tensor_infos(program)[index].dtype));
  std::vector<std::int32_t> rows;
  read_some(session, "sparse.rows", slot.first_row, slot.rows() + 1, rows);
  std::vector<std::byte> row(static_cast<std::size_t>(slot.columns() * size));
  std::vector<std::byte> values;
  std::vector<std::uint8_t> columns;
  for (std::size_t r = 0; r + 1 < rows.size(); ++r) {
    std::ranges::fill(row, std::byte{0});
    const std::int64_t begin = rows[r];
    const std::int64_t end = rows[r + 1];
    if (begin < end) {
      read_some(session, "sparse.weight", begin * size, (end - begin) * size, values);
      // Eight packed columns begin on a whole byte, and column_at reads 4 bytes, which the store has room for after the last one
      // too.
      const std::int64_t whole = begin / 8 * 8;
      const std::int64_t first_byte = whole / 8 * slot.bits;
      read_some(session, "sparse.columns", first_byte, (end - 1) * slot.bits / 8 + 4 - first_byte, columns);
      for (std::int64_t k = begin; k < end; ++k) {
        const std::int64_t element = slot.logical_element(0, backends::column_at(columns.data(), slot.bits, k - whole));
        std::memcpy(row.data() + element * size, values.data() + (k - begin) * size, static_cast<std::size_t>(size));
      }
    }
    write(row);
  }
}

}  // namespace snug::train
