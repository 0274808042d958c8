#include "data/images/readable_images.h"

#include "base/parallel.h"
#include "base/threads.h"
#include "data/images/image_file.h"

namespace snug::data {

namespace {

constexpr std::size_t kTogether = 256;

}  // namespace

void ReadableImages::add(std::string_view name) {
  names_.emplace_back(name);
  if (names_.size() == kTogether) finish();
}

void ReadableImages::finish() {
  std::vector<std::string> reasons(names_.size());
  run_in_threads(names_.size(), thread_count(0), [&](std::size_t i) {
    try {
      decode_image_file(folder_ / names_[i]);
    } catch (const UserError& error) {
      reasons[i] = error.what();
    }
  });
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (reasons[i].empty()) {
      if (use_) use_(names_[i]);
      continue;
    }
    ++unreadable_;
    if (use_bad_) use_bad_(folder_ / names_[i], reasons[i]);
  }
  names_.clear();
}

}  // namespace snug::data
