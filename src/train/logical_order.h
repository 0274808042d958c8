// A state of the arena in logical (row-major) order, whatever its layout: any range of it can be read and written, so that a
// state goes to a file and back without a copy on the host.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "ir/device.h"
#include "ir/kernel.h"

namespace snug::train {

class LogicalOrder {
 public:
  // The value of `type` at `offset`; type, backend and arena must outlive it. Opaque layouts are read by the backend, in an arena
  // that the host can access.
  LogicalOrder(const Type& type, const Backend& backend, Arena& arena, Bytes offset);

  // In logical order, without padding.
  std::size_t bytes() const { return bytes_; }

  // The range from byte `begin` on; whole elements.
  void read(std::size_t begin, std::span<std::byte> target) const;
  void write(std::size_t begin, std::span<const std::byte> source);

  // `size` bytes from `begin` on, in pieces of at most kPieceBytes: each is passed to `use`, or filled by `fill` and then
  // written.
  void read_in_pieces(std::size_t begin, std::size_t size, const std::function<void(std::span<const std::byte>)>& use) const;
  void write_in_pieces(std::size_t begin, std::size_t size, const std::function<void(std::span<std::byte>)>& fill);

 private:
  // The size of these pieces: whole rows where a few of them fit.
  std::size_t piece_bytes() const;
  // Calls whole_rows(first row, number of rows, byte of the range) and columns(element in memory, number of adjacent elements,
  // byte of the range) for the parts of a range of a channels_last value.
  template <typename WholeRows, typename Columns>
  void for_each_part(std::size_t begin, std::size_t size, const WholeRows& whole_rows, const Columns& columns) const;
  Bytes place(std::size_t byte) const { return offset_ + Bytes(static_cast<std::int64_t>(byte)); }

  const Type& type_;
  const Backend& backend_;
  Arena& arena_;
  Bytes offset_;
  std::size_t bytes_ = 0;
  // Of a channels_last value, in elements: outer index, then `rest`, then channel in memory; outer, channel, `rest` in logical
  // order. A row is everything with the same outer index.
  bool is_channels_last_ = false;
  std::size_t element_bytes_ = 1;
  std::size_t channels_ = 0;
  std::size_t rest_ = 0;
  std::size_t row_bytes_ = 0;
};

}  // namespace snug::train
