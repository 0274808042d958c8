// A state of the arena in logical (row-major) order, whatever its layout: any stretch of it can be read and written, so that a
// state goes to a file and back without a copy of itself on the host.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "ir/device.h"
#include "ir/kernel.h"

namespace snug::train {

class LogicalOrder {
 public:
  // The value of `type` that lies at `offset`; all three must outlive it. Opaque layouts are the backend's own, and lie where the
  // host can reach them.
  LogicalOrder(const Type& type, const Backend& backend, Arena& arena, Bytes offset);

  // In logical order, without what only pads the layout.
  std::size_t bytes() const { return bytes_; }

  // The stretch from byte `begin` on; whole elements.
  void read(std::size_t begin, std::span<std::byte> target) const;
  void write(std::size_t begin, std::span<const std::byte> source);

  // All of it, in stretches of at most kPieceBytes: each is handed to `use`, or filled by `fill` and then written.
  void read_in_pieces(const std::function<void(std::span<const std::byte>)>& use) const;
  void write_in_pieces(const std::function<void(std::span<std::byte>)>& fill);

 private:
  // Of the stretches above: whole rows where a few of them fit.
  std::size_t piece_bytes() const;
  // Calls whole_rows(first row, number of rows, byte of the stretch) and columns(element in memory, how many lie there side by
  // side, byte of the stretch) for what a stretch of a channels_last value consists of.
  template <typename WholeRows, typename Columns>
  void for_each_part(std::size_t begin, std::size_t size, const WholeRows& whole_rows, const Columns& columns) const;
  Bytes place(std::size_t byte) const { return offset_ + Bytes(static_cast<std::int64_t>(byte)); }

  const Type& type_;
  const Backend& backend_;
  Arena& arena_;
  Bytes offset_;
  std::size_t bytes_ = 0;
  // Of a channels_last value, in elements: outer index, then `rest`, then channel in memory; outer, channel, `rest` in logical
  // order. A row is all that has the same outer index.
  bool is_channels_last_ = false;
  std::size_t element_bytes_ = 1;
  std::size_t channels_ = 0;
  std::size_t rest_ = 0;
  std::size_t row_bytes_ = 0;
};

}  // namespace snug::train
