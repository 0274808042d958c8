// Rewiring of the sparse store, in place: survivors are compacted to the left, then spread to the right with the new values
// between them. Needs only a few numbers per tensor beside the store.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "backends/growth.h"
#include "backends/sparse_store.h"
#include "ir/kernel.h"
#include "ir/scalars.h"

namespace snug::backends {

// GrowthShares for lists.
void share_growth(std::int64_t total, const std::vector<std::int64_t>& survivors, const std::vector<std::int64_t>& room,
                  std::vector<std::int64_t>& growth);

template <typename T>
class Rewiring {
 public:
  Rewiring(ops::SparseGrid grid, std::int64_t nonzeros)
      : grid_(std::move(grid)),
        nonzeros_(nonzeros),
        survivors_(grid_.rows.size()),
        room_(grid_.rows.size()),
        growth_(grid_.rows.size()) {}

  // Prunes every value below the threshold. Returns how many.
  std::int64_t prune_below(double threshold, T* values, std::uint8_t* columns, std::int32_t* rows) {
    prune(values, columns, rows, [&](std::size_t, std::int64_t k) { return magnitude(values[k]) < threshold; });
    return finish_shares(rows);
  }

  // Prunes the smallest values of every tensor, its share of `target`; of equal ones the first.
  std::int64_t prune_smallest(std::int64_t target, T* values, std::uint8_t* columns, std::int32_t* rows) {
    std::size_t tensor = grid_.rows.size();
    double limit = 0;
    std::int64_t equal_left = 0;
    std::int64_t row = 0;
    std::vector<std::int64_t>& pruned = growth_;
    for (std::size_t t = 0; t < grid_.rows.size(); row += grid_.rows[t++]) {
      const std::int64_t count = rows[row + grid_.rows[t]] - rows[row];
      pruned[t] = (target * count + nonzeros_ / 2) / nonzeros_;
      room_[t] = rows[row];  // where the tensor's values begin, before they move
      survivors_[t] = count;
    }
    prune(values, columns, rows, [&](std::size_t t, std::int64_t k) {
      if (t != tensor) {
        tensor = t;
        const Selected found = select(values + room_[t], survivors_[t], pruned[t]);
        limit = found.limit;
        equal_left = found.equal;
      }
      const double size = magnitude(values[k]);
      return size < limit || (size == limit && equal_left-- > 0);
    });
    std::int64_t sum = 0;
    for (const std::int64_t count : pruned) sum += count;
    return sum;
  }

  // Puts zeros at random empty places, as many in each tensor as its growth.
  void grow(std::uint64_t seed, std::uint64_t step, T* values, std::uint8_t* columns, std::int32_t* rows) const {
    PlaceWords words(
        [seed, step](std::uint64_t block) { return philox(seed, block, ops::counter_high(ops::kRewirePurpose, step)); });
    std::int64_t row = grid_.all_rows();
    std::uint64_t place = 0;
    for (std::size_t t = 0; t < grid_.rows.size(); ++t) place += static_cast<std::uint64_t>(grid_.elements(t));
    std::int64_t source_end = rows[row];
    std::int64_t target = nonzeros_;
    for (std::size_t t = grid_.rows.size(); t-- > 0;) {
      std::int64_t wanted = growth_[t];
      const std::int64_t first_row = row - grid_.rows[t];
      std::int64_t empty = grid_.elements(t) - (source_end - rows[first_row]);
      while (row-- > first_row) {
        const std::int64_t source_begin = rows[row];
        rows[row + 1] = static_cast<std::int32_t>(target);
        std::int64_t source = source_end - 1;
        for (std::int64_t column = grid_.columns[t]; column-- > 0;) {
          --place;
          if (source >= source_begin && column_at(columns, grid_.bits, source) == column) {
            values[--target] = values[source--];
            put_column(columns, grid_.bits, target, column);
            continue;
          }
          if (wanted > 0 && ops::takes_place(words(place), wanted, empty)) {
            values[--target] = T{};
            put_column(columns, grid_.bits, target, column);
            --wanted;
          }
          --empty;
        }
        source_end = source_begin;
      }
      ++row;
    }
  }

 private:
  static double magnitude(T value) { return std::abs(real_of(value)); }

  // Compacts what is kept to the left; goes(tensor, k) is called once for each value, in order.
  template <typename Goes>
  void prune(T* values, std::uint8_t* columns, std::int32_t* rows, const Goes& goes) const {
    std::int64_t target = 0;
    std::int64_t row = 0;
    std::int64_t end = rows[0];
    for (std::size_t t = 0; t < grid_.rows.size(); ++t) {
      for (std::int64_t i = 0; i < grid_.rows[t]; ++i, ++row) {
        const std::int64_t begin = end;
        end = rows[row + 1];
        rows[row] = static_cast<std::int32_t>(target);
        for (std::int64_t k = begin; k < end; ++k) {
          if (goes(t, k)) continue;
          values[target] = values[k];
          put_column(columns, grid_.bits, target++, column_at(columns, grid_.bits, k));
        }
      }
    }
    rows[row] = static_cast<std::int32_t>(target);
  }

  std::int64_t finish_shares(const std::int32_t* rows) {
    std::int64_t row = 0;
    for (std::size_t t = 0; t < grid_.rows.size(); row += grid_.rows[t++]) {
      survivors_[t] = rows[row + grid_.rows[t]] - rows[row];
      room_[t] = grid_.elements(t) - survivors_[t];
    }
    const std::int64_t pruned = nonzeros_ - rows[row];
    share_growth(pruned, survivors_, room_, growth_);
    return pruned;
  }

  // The `count` smallest are those below the limit and that many of those that equal it.
  struct Selected {
    double limit;
    std::int64_t equal;
  };
  // Radix selection on the magnitudes' bits, which have the same order: no copy is needed.
  static Selected select(const T* values, std::int64_t size, std::int64_t count) {
    if (count == 0) return {.limit = 0, .equal = 0};
    std::uint64_t prefix = 0;
    std::int64_t left = count;
    for (int shift = 56; shift >= 0; shift -= 8) {
      std::int64_t histogram[256] = {};
      for (std::int64_t i = 0; i < size; ++i) {
        const auto bits = std::bit_cast<std::uint64_t>(magnitude(values[i]));
        if (shift == 56 || bits >> static_cast<unsigned>(shift + 8) == prefix)
          ++histogram[(bits >> static_cast<unsigned>(shift)) & 0xFFU];
      }
      std::uint64_t digit = 0;
      while (left > histogram[digit]) left -= histogram[digit++];
      prefix = prefix << 8U | digit;
    }
    return {.limit = std::bit_cast<double>(prefix), .equal = left};
  }

  ops::SparseGrid grid_;
  std::int64_t nonzeros_;
  std::vector<std::int64_t> survivors_, room_, growth_;
};

// An output that may lie in its input's bytes, with the input's contents.
template <typename T>
T* brought_over(const Operand& input, const Operand& output) {
  if (input.data != output.data) std::memcpy(output.data, input.data, static_cast<std::size_t>(output.type.bytes().count()));
  return reinterpret_cast<T*>(output.data);
}

// The op `rewire` for values of type T.
template <typename T>
class BoundRewiring final : public BoundKernel {
 public:
  explicit BoundRewiring(const KernelArguments& arguments)
      : attributes_(arguments.attributes),
        inputs_(arguments.inputs.begin(), arguments.inputs.end()),
        outputs_(arguments.outputs.begin(), arguments.outputs.end()),
        rewiring_(ops::SparseGrid::from(arguments.attributes), arguments.inputs[0].type.elements()) {}

  void run() override {
    T* values = brought_over<T>(inputs_[0], outputs_[0]);
    auto* columns = brought_over<std::uint8_t>(inputs_[1], outputs_[1]);
    auto* rows = brought_over<std::int32_t>(inputs_[2], outputs_[2]);
    auto* threshold = brought_over<double>(inputs_[3], outputs_[3]);
    Scalars scalars;
    std::memcpy(&scalars, inputs_[4].data, sizeof scalars);
    const std::int64_t target = attributes_.integer("target");
    std::int64_t pruned = 0;
    if (attributes_.integer("per_tensor") != 0) {
      pruned = rewiring_.prune_smallest(target, values, columns, rows);
    } else {
      pruned = rewiring_.prune_below(*threshold, values, columns, rows);
      *threshold = adapted_threshold(*threshold, pruned, target);
    }
    *reinterpret_cast<double*>(outputs_[4].data) = static_cast<double>(pruned);
    rewiring_.grow(scalars.seed, scalars.step, values, columns, rows);
    if (outputs_.size() == 6) std::fill_n(reinterpret_cast<T*>(outputs_[5].data), outputs_[5].type.elements(), T{});
  }

 private:
  Attributes attributes_;
  std::vector<Operand> inputs_, outputs_;
  Rewiring<T> rewiring_;
};

}  // namespace snug::backends
