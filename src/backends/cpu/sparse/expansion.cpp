#include "backends/cpu/sparse/expansion.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/layout_map.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/storage.h"

namespace snug::backends::cpu {

namespace {

// Rows that share cache lines in a blocked layout belong to one thread.
constexpr std::int64_t kRowGrain = 16;

}  // namespace

SparsePart whole_part(const ops::SparseSlot& slot, const Operand& columns, const Operand& rows) {
  return {.slot = slot, .columns = columns.data, .rows = rows.data, .row_begin = 0, .row_end = slot.rows()};
}

namespace {

// The positions of a part's rows and columns in a layout, written into the workspace.
class Positions {
 public:
  Positions(const SparsePart& part, const dnnl::memory::desc& descriptor, std::byte* tables) : part_(part), layout_(descriptor) {
    rows_ = reinterpret_cast<std::int32_t*>(tables);
    columns_ = rows_ + (part.row_end - part.row_begin);
  }

  void make() const {
    for (std::int64_t row = part_.row_begin; row < part_.row_end; ++row)
      rows_[row - part_.row_begin] = static_cast<std::int32_t>(layout_.place(0, row - part_.row_begin));
    const ops::SparseSlot& slot = part_.slot;
    std::int32_t* out = columns_;
    for (std::int64_t h = 0; h < slot.shape[2]; ++h) {
      for (std::int64_t w = 0; w < slot.shape[3]; ++w) {
        const std::int64_t tap = layout_.place(2, h) + layout_.place(3, w);
        for (std::int64_t i = 0; i < slot.shape[1]; ++i) *out++ = static_cast<std::int32_t>(tap + layout_.place(1, i));
      }
    }
  }

  // body(k, position) for every nonzero of some rows of the part.
  template <typename Body>
  void for_nonzeros(Range rows, const Body& body) const {
    const auto* offsets = reinterpret_cast<const std::int32_t*>(part_.rows) + part_.slot.first_row + part_.row_begin;
    const auto* packed = reinterpret_cast<const std::uint8_t*>(part_.columns);
    const int bits = part_.slot.bits;
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const std::int64_t base = rows_[row];
      for (std::int64_t k = offsets[row]; k < offsets[row + 1]; ++k) body(k, base + columns_[column_at(packed, bits, k)]);
    }
  }

  std::int64_t rows() const { return part_.row_end - part_.row_begin; }

 private:
  SparsePart part_;
  LayoutMap layout_;
  std::int32_t* rows_;
  std::int32_t* columns_;
};

}  // namespace

Bytes position_tables_size(const SparsePart& part) {
  return Bytes((part.row_end - part.row_begin + part.slot.columns()) * static_cast<std::int64_t>(sizeof(std::int32_t)));
}

std::unique_ptr<BoundKernel> expand(const SparsePart& part, const std::byte* values, const dnnl::memory::desc& descriptor,
                                    std::byte* dense, std::byte* tables, int threads) {
  const DType dtype = descriptor.data_type() == dnnl::memory::data_type::bf16 ? DType::bf16 : DType::f32;
  return with_storage(dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([=, positions = Positions(part, descriptor, tables), size = size_of(descriptor).count(),
                       from = reinterpret_cast<const T*>(values), to = reinterpret_cast<T*>(dense)] {
      positions.make();
      for_each_part(size, threads, 64,
                    [&](int, Range range) { std::memset(dense + range.begin, 0, static_cast<std::size_t>(range.size())); });
      for_each_part(positions.rows(), threads, kRowGrain, [&](int, Range range) {
        positions.for_nonzeros(range, [&](std::int64_t k, std::int64_t position) { to[position] = from[k]; });
      });
    });
  });
}

std::unique_ptr<BoundKernel> expand_as_floats(const SparsePart& part, const Operand& values, const dnnl::memory::desc& descriptor,
                                              float* dense, std::byte* tables, int threads) {
  return with_storage(values.type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound(
        [=, positions = Positions(part, descriptor, tables), size = size_of(descriptor).count() / 4, from = elements<T>(values)] {
          positions.make();
          for_each_part(size, threads, 16, [&](int, Range range) { std::fill(dense + range.begin, dense + range.end, 0.0F); });
          for_each_part(positions.rows(), threads, kRowGrain, [&](int, Range range) {
            positions.for_nonzeros(range, [&](std::int64_t k, std::int64_t position) { dense[position] = to_float(from[k]); });
          });
        });
  });
}

std::unique_ptr<BoundKernel> gather_gradient(const SparsePart& part, const dnnl::memory::desc& descriptor, const std::byte* dense,
                                             DType dtype, std::byte* sum, std::byte* tables, int threads) {
  return with_storage(dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([=, positions = Positions(part, descriptor, tables), from = reinterpret_cast<const float*>(dense),
                       to = reinterpret_cast<T*>(sum)] {
      positions.make();
      for_each_part(positions.rows(), threads, kRowGrain, [&](int, Range range) {
        positions.for_nonzeros(range, [&](std::int64_t k, std::int64_t position) {
          to[k] = stored_float<T>(to_float(to[k]) + to_float(stored_float<T>(from[position])));
        });
      });
    });
  });
}

}  // namespace snug::backends::cpu
