// Batches of a data set in the order of its epochs, read ahead by a separate thread into a fixed number of buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "data/dataset.h"

namespace snug::data {

struct Batch {
  std::span<const NamedBytes> inputs;  // one for each of the data set's, in their order
  std::size_t examples = 0;
  std::uint64_t epoch = 0;     // a batch lies in one epoch
  std::uint64_t position = 0;  // of its first example in the epoch's order; a run resumes after it at position + examples
};

struct StreamOptions {
  std::uint64_t seed = 0;
  bool shuffle = false;        // each epoch in its own order, given by seed and epoch; otherwise in the order of the files
  std::uint64_t epoch = 0;     // where to start
  std::uint64_t position = 0;  // ... counted in examples of that epoch, at most their number
  bool repeat = false;         // epoch after epoch without end; otherwise only the first
};

class Stream {
 public:
  using Options = StreamOptions;

  // One buffer is filled while the caller uses the other.
  static constexpr std::int64_t kBuffers = 2;

  // `dataset` must outlive the stream. Starts to read at once.
  Stream(const Dataset& dataset, Split split, std::int64_t batch, const Options& options);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // The next batch, valid until the next call; none after the last. The last batch of an epoch may
  // be smaller, and none is dropped. An error of the reading thread is thrown here in place of its
  // batch, and at every later call. Allocates nothing.
  std::optional<Batch> next();

  // The size of the buffers, for the process overhead.
  std::int64_t buffer_bytes() const;

 private:
  class Reader;
  std::unique_ptr<Reader> reader_;
};

}  // namespace snug::data
