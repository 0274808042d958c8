#include "data/stream.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "data/permutation.h"

namespace snug::data {

// The two threads share a ring of buffers: batch k lies in buffer k % kBuffers. `filled_` and `released_` count the batches that
// the reader has filled and that the caller has released; nothing else is shared.
class Stream::Reader {
 public:
  Reader(const Dataset& dataset, Split split, std::int64_t batch, const Options& options)
      : dataset_(dataset),
        split_(split),
        batch_(static_cast<std::uint64_t>(batch)),
        options_(options),
        size_(static_cast<std::uint64_t>(dataset.description().examples(split))),
        inputs_(dataset.inputs()),
        example_(inputs_.size()) {
    SNUG_CHECK(batch > 0, "batches of {} examples", batch);
    SNUG_CHECK(size_ > 0, "data set {} without examples", dataset.description().name);
    if (options.position > size_) {
      throw_user_error("the run was at example {} of an epoch, but {} has only {} examples: give it the data it was started with",
                       options.position, dataset.description().name, size_);
    }
    // A batch is never larger than an epoch.
    const std::uint64_t largest = std::min(batch_, size_);
    for (Buffer& buffer : buffers_) {
      for (const Input& input : inputs_) buffer.bytes.emplace_back(largest * input.example_bytes);
      buffer.inputs.resize(inputs_.size());
    }
    thread_ = std::thread([this] { read_all(); });
  }

  ~Reader() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  std::optional<Batch> next() {
    std::unique_lock lock(mutex_);
    released_ = taken_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return filled_ > taken_ || ended_; });
    if (filled_ > taken_) {
      Buffer& buffer = buffers_[taken_ % kBuffers];
      ++taken_;
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        const std::span<const std::byte> bytes = buffer.bytes[i];
        buffer.inputs[i] = {.name = inputs_[i].name, .bytes = bytes.first(buffer.count * inputs_[i].example_bytes)};
      }
      return Batch{.inputs = buffer.inputs, .examples = buffer.count, .epoch = buffer.epoch, .position = buffer.position};
    }
    if (error_) std::rethrow_exception(error_);
    return std::nullopt;
  }

  std::int64_t buffer_bytes() const {
    std::size_t sum = 0;
    for (const Buffer& buffer : buffers_) {
      for (const std::vector<std::byte>& bytes : buffer.bytes) sum += bytes.size();
    }
    return static_cast<std::int64_t>(sum);
  }

 private:
  struct Buffer {
    std::vector<std::vector<std::byte>> bytes;  // of each input
    std::vector<NamedBytes> inputs;             // of the batch that the caller has
    std::size_t count = 0;                      // examples in it
    std::uint64_t epoch = 0;
    std::uint64_t position = 0;
  };

  void read_all() {
    std::exception_ptr error;
    try {
      std::uint64_t position = options_.position;
      for (std::uint64_t epoch = options_.epoch;; ++epoch) {
        if (!read_epoch(epoch, position) || !options_.repeat) break;
        position = 0;
      }
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      error_ = error;
      ended_ = true;
    }
    changed_.notify_all();
  }

  // False when the stream is being closed.
  bool read_epoch(std::uint64_t epoch, std::uint64_t position) {
    const Permutation order(options_.seed, epoch, size_);
    while (position < size_) {
      Buffer* buffer = wait_for_free_buffer();
      if (buffer == nullptr) return false;
      const std::uint64_t count = std::min(batch_, size_ - position);
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t index = options_.shuffle ? order(position + i) : position + i;
        for (std::size_t k = 0; k < inputs_.size(); ++k) {
          const std::size_t each = inputs_[k].example_bytes;
          example_[k] = std::span(buffer->bytes[k]).subspan(i * each, each);
        }
        dataset_.read_in_epoch(epoch, split_, static_cast<std::int64_t>(index), example_);
      }
      buffer->count = count;
      buffer->epoch = epoch;
      buffer->position = position;
      position += count;
      {
        const std::lock_guard lock(mutex_);
        ++filled_;
      }
      changed_.notify_all();
    }
    return true;
  }

  Buffer* wait_for_free_buffer() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || filled_ - released_ < kBuffers; });
    return stopping_ ? nullptr : &buffers_[filled_ % kBuffers];
  }

  const Dataset& dataset_;
  const Split split_;
  const std::uint64_t batch_;
  const Options options_;
  const std::uint64_t size_;
  const std::vector<Input> inputs_;
  std::vector<std::span<std::byte>> example_;  // the reading thread's
  std::array<Buffer, kBuffers> buffers_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_. released_ <= taken_ <= filled_ <= released_ + kBuffers.
  std::uint64_t filled_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t released_ = 0;
  bool ended_ = false;
  bool stopping_ = false;
  std::exception_ptr error_;

  std::thread thread_;
};

Stream::Stream(const Dataset& dataset, Split split, std::int64_t batch, const Options& options)
    : reader_(std::make_unique<Reader>(dataset, split, batch, options)) {}

Stream::~Stream() = default;

std::optional<Batch> Stream::next() { return reader_->next(); }

std::int64_t Stream::buffer_bytes() const { return reader_->buffer_bytes(); }

}  // namespace snug::data
