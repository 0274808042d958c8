#include "backends/cpu/sparse_expansion.h"

#include <algorithm>

#include "backends/cpu/parallel.h"
#include "base/error.h"

namespace snug::backends::cpu {

namespace {

// Rows that share cache lines in a blocked layout stay with one thread.
constexpr std::int64_t kRowGrain = 16;

}  // namespace

BlockedPositions::BlockedPositions(const dnnl::memory::desc& descriptor) {
  SNUG_CHECK(descriptor.data.format_kind == dnnl_blocked && descriptor.data.offset0 == 0, "a weight's layout is not blocked");
  const dnnl_blocking_desc_t& blocking = descriptor.data.format_desc.blocking;
  std::int64_t stride = 1;
  for (int b = blocking.inner_nblks - 1; b >= 0; --b) {
    blocks_.push_back({.dim = static_cast<int>(blocking.inner_idxs[b]), .size = blocking.inner_blks[b], .stride = stride});
    stride *= blocking.inner_blks[b];
  }
  strides_.assign(blocking.strides, blocking.strides + descriptor.data.ndims);
}

std::int64_t BlockedPositions::of(int dim, std::int64_t index) const {
  std::int64_t position = 0;
  for (const Block& block : blocks_) {
    if (block.dim != dim) continue;
    position += index % block.size * block.stride;
    index /= block.size;
  }
  return position + index * strides_[static_cast<std::size_t>(dim)];
}

SparsePart whole_part(const ops::SparseSlot& slot, const Operand& columns, const Operand& rows) {
  return {.slot = slot,
          .columns = columns.data,
          .rows = rows.data,
          .row_begin = 0,
          .row_end = slot.rows(),
          .channel_begin = 0,
          .channel_end = slot.shape[1]};
}

namespace {

// The positions of a part's rows and columns in a layout, and how they get into the workspace.
class Positions {
 public:
  Positions(const SparsePart& part, const dnnl::memory::desc& descriptor, std::byte* tables)
      : part_(part), layout_(descriptor), outside_(static_cast<std::int32_t>(descriptor.get_size() / element_size(descriptor))) {
    rows_ = reinterpret_cast<std::int32_t*>(tables);
    columns_ = rows_ + (part.row_end - part.row_begin);
  }

  // Columns of other channels than the part's get the place behind the layout's last element, so that no row asks.
  void make() const {
    for (std::int64_t row = part_.row_begin; row < part_.row_end; ++row)
      rows_[row - part_.row_begin] = static_cast<std::int32_t>(layout_.of(0, row - part_.row_begin));
    const ops::SparseSlot& slot = part_.slot;
    std::int32_t* out = columns_;
    for (std::int64_t h = 0; h < slot.shape[2]; ++h) {
      for (std::int64_t w = 0; w < slot.shape[3]; ++w) {
        const std::int64_t tap = layout_.of(2, h) + layout_.of(3, w);
        for (std::int64_t i = 0; i < slot.shape[1]; ++i) {
          const bool inside = i >= part_.channel_begin && i < part_.channel_end;
          *out++ = inside ? static_cast<std::int32_t>(tap + layout_.of(1, i - part_.channel_begin)) : outside_;
        }
      }
    }
  }

  // body(k, position) for every nonzero of some rows of the part; a position outside is `outside()`.
  template <typename Body>
  void for_nonzeros(Range rows, const Body& body) const {
    const auto* offsets = reinterpret_cast<const std::int32_t*>(part_.rows) + part_.slot.first_row + part_.row_begin;
    const auto* packed = reinterpret_cast<const std::uint8_t*>(part_.columns);
    const int bits = part_.slot.bits;
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const std::int64_t base = rows_[row];
      for (std::int64_t k = offsets[row]; k < offsets[row + 1]; ++k) {
        const std::int32_t within = columns_[column_at(packed, bits, k)];
        body(k, within == outside_ ? outside_ : base + within);
      }
    }
  }

  std::int64_t rows() const { return part_.row_end - part_.row_begin; }
  std::int64_t outside() const { return outside_; }
  bool has_outside() const { return !part_.all_channels(); }

 private:
  static std::size_t element_size(const dnnl::memory::desc& descriptor) {
    return dnnl::memory::data_type_size(descriptor.data_type());
  }

  SparsePart part_;
  BlockedPositions layout_;
  std::int32_t outside_;
  std::int32_t* rows_;
  std::int32_t* columns_;
};

}  // namespace

Bytes position_tables_size(const SparsePart& part) {
  return Bytes((part.row_end - part.row_begin + part.slot.columns()) * static_cast<std::int64_t>(sizeof(std::int32_t)));
}

Bytes expanded_size(const dnnl::memory::desc& descriptor) {
  return size_of(descriptor) + Bytes(static_cast<std::int64_t>(dnnl::memory::data_type_size(descriptor.data_type())));
}

std::unique_ptr<BoundKernel> expand(const SparsePart& part, const std::byte* values, const dnnl::memory::desc& descriptor,
                                    std::byte* dense, std::byte* tables, int threads) {
  const auto run = [=, positions = Positions(part, descriptor, tables), size = size_of(descriptor).count()](auto element) {
    using T = decltype(element);
    positions.make();
    const auto* from = reinterpret_cast<const T*>(values);
    auto* to = reinterpret_cast<T*>(dense);
    for_each_part(size, threads, 64, [&](int, Range range) { std::fill_n(dense + range.begin, range.size(), std::byte{0}); });
    for_each_part(positions.rows(), threads, kRowGrain, [&](int, Range range) {
      positions.for_nonzeros(range, [&](std::int64_t k, std::int64_t position) { to[position] = from[k]; });
    });
  };
  return make_bound([run] { run(float{}); });
}

std::unique_ptr<BoundKernel> gather_gradient(const SparsePart& part, const dnnl::memory::desc& descriptor, const std::byte* dense,
                                             std::byte* sum, std::byte* tables, int threads) {
  return make_bound([=, positions = Positions(part, descriptor, tables)] {
    positions.make();
    const auto* from = reinterpret_cast<const float*>(dense);
    auto* to = reinterpret_cast<float*>(sum);
    for_each_part(positions.rows(), threads, kRowGrain, [&](int, Range range) {
      positions.for_nonzeros(range, [&](std::int64_t k, std::int64_t position) {
        if (position != positions.outside()) to[k] += from[position];
      });
    });
  });
}

}  // namespace snug::backends::cpu
