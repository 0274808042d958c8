#include "data/external_sort.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace snug::data {

namespace {

const char* const kWhat = "the temporary file of file names";

using Length = std::uint16_t;  // in front of each name in a run

}  // namespace

class ExternalSort::RunWriter {
 public:
  explicit RunWriter(ExternalSort& sort) : sort_(sort), run_{.offset = sort.file_bytes_} {}

  void add(std::string_view name) {
    if (buffer_.size() + sizeof(Length) + name.size() > kReadBytes) flush();
    const auto length = static_cast<Length>(name.size());
    buffer_.append(reinterpret_cast<const char*>(&length), sizeof length);
    buffer_.append(name);
  }

  Run finish() {
    flush();
    return run_;
  }

 private:
  void flush() {
    write_to_unnamed(sort_.file_, kWhat, std::as_bytes(std::span(buffer_)));
    run_.bytes += static_cast<std::int64_t>(buffer_.size());
    sort_.file_bytes_ += static_cast<std::int64_t>(buffer_.size());
    buffer_.clear();
  }

  ExternalSort& sort_;
  Run run_;
  std::string buffer_;
};

class ExternalSort::RunReader {
 public:
  RunReader(const File& file, Run run) : file_(file), run_(run), buffer_(kReadBytes) { advance(); }

  bool ended() const { return ended_; }
  std::string_view name() const { return name_; }

  void advance() {
    if (!has(sizeof(Length))) {
      ended_ = true;
      return;
    }
    Length length = 0;
    std::memcpy(&length, buffer_.data() + at_, sizeof length);
    at_ += sizeof length;
    SNUG_CHECK(has(length), "a run of names ends inside a name");
    name_ = std::string_view(buffer_.data() + at_, length);
    at_ += length;
  }

 private:
  // Whether `bytes` bytes from at_ on are in the buffer; reads more if necessary. Names are shorter than the buffer.
  bool has(std::size_t bytes) {
    if (filled_ - at_ >= bytes) return true;
    std::memmove(buffer_.data(), buffer_.data() + at_, filled_ - at_);
    filled_ -= at_;
    at_ = 0;
    const auto more = std::min(buffer_.size() - filled_, static_cast<std::size_t>(run_.bytes));
    read_at(file_, kWhat, run_.offset, std::as_writable_bytes(std::span(buffer_)).subspan(filled_, more));
    run_.offset += static_cast<std::int64_t>(more);
    run_.bytes -= static_cast<std::int64_t>(more);
    filled_ += more;
    return filled_ >= bytes;
  }

  const File& file_;
  Run run_;  // what is still to be read
  std::vector<char> buffer_;
  std::size_t filled_ = 0;
  std::size_t at_ = 0;
  std::string_view name_;
  bool ended_ = false;
};

void ExternalSort::add(std::string_view name) {
  SNUG_CHECK(name.size() <= kLongestName, "a name of {} bytes", name.size());
  const std::size_t cost = name.size() + sizeof(std::string_view);
  if (!names_.empty() && gathered_bytes_ + cost > run_bytes_) spill();
  // Room for the whole run at once: the views in names_ must stay valid.
  if (names_.empty()) text_.reserve(std::max(run_bytes_, kLongestName));
  const std::size_t at = text_.size();
  text_.append(name);
  names_.emplace_back(text_.data() + at, name.size());
  gathered_bytes_ += cost;
  ++count_;
}

void ExternalSort::spill() {
  if (file_.descriptor() < 0) file_ = open_unnamed_file();
  std::ranges::sort(names_);
  RunWriter writer(*this);
  for (const std::string_view name : names_) writer.add(name);
  runs_.push_back(writer.finish());
  names_.clear();
  text_.clear();
  gathered_bytes_ = 0;
}

void ExternalSort::drain(const std::function<void(std::string_view)>& take) {
  if (runs_.empty()) {
    std::ranges::sort(names_);
    for (const std::string_view name : names_) take(name);
  } else {
    if (!names_.empty()) spill();
    names_.shrink_to_fit();
    text_.shrink_to_fit();
    std::size_t first = 0;
    for (; runs_.size() - first > kFanIn; first += kFanIn) {
      RunWriter writer(*this);
      merge(first, kFanIn, [&](std::string_view name) { writer.add(name); });
      runs_.push_back(writer.finish());
    }
    merge(first, runs_.size() - first, take);
  }
  *this = ExternalSort(run_bytes_);
}

void ExternalSort::merge(std::size_t first_run, std::size_t runs, const std::function<void(std::string_view)>& take) {
  std::vector<RunReader> readers;
  readers.reserve(runs);
  for (std::size_t i = 0; i < runs; ++i) readers.emplace_back(file_, runs_[first_run + i]);
  for (;;) {
    RunReader* least = nullptr;
    for (RunReader& reader : readers) {
      if (!reader.ended() && (least == nullptr || reader.name() < least->name())) least = &reader;
    }
    if (least == nullptr) return;
    take(least->name());
    least->advance();
  }
}

}  // namespace snug::data
