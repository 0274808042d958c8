#include "train/average.h"

#include <array>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/pieces.h"
#include "io/elements.h"
#include "io/file_io.h"
#include "io/weights_tensors.h"
#include "train/snapshot.h"
#include "train/sparse_weights.h"

namespace snug::train {

namespace {

constexpr std::array kAveraged{Role::parameter, Role::statistic};

struct Source {
  std::filesystem::path path;
  std::vector<std::uint64_t> begins;  // of each state in the file
};

// The mean of as many numbers of each source as `target` holds, which begin `at` bytes after its state.
void average_piece(std::span<const Source> sources, std::size_t state, std::uint64_t at, DType dtype,
                   std::span<std::byte> target) {
  const std::size_t count = target.size() / (static_cast<std::size_t>(bits_per_element(dtype)) / 8);
  std::vector<std::byte> stored(target.size());
  std::vector<double> values(count);
  std::vector<double> mean;
  for (const Source& source : sources) {
    io::InputFile(source.path).read_at(source.begins[state] + at, stored);
    io::convert_elements(dtype, stored, DType::f64, std::as_writable_bytes(std::span(values)));
    if (mean.empty()) {
      mean = values;  // not added to 0, which would make a 0 of a -0
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) mean[i] += values[i];
  }
  for (double& value : mean) value /= static_cast<double>(sources.size());
  io::convert_elements(DType::f64, std::as_bytes(std::span(mean)), dtype, target);
}

}  // namespace

std::vector<std::uint64_t> average_snapshots(std::span<const std::filesystem::path> snapshots, Session& session) {
  SNUG_CHECK(!snapshots.empty(), "there is no snapshot to average");
  const Program& program = session.plan().program;
  const bool is_sparse = !sparse_tensor_infos(program).empty();
  if (is_sparse && snapshots.size() > 1) {
    throw_user_error("'{}' has sparse weights, whose pattern differs from snapshot to snapshot; export one of them",
                     program.name);
  }
  std::vector<StateId> states = io::states_of(program, kAveraged);
  std::erase_if(states, [&](StateId id) { return !is_floating(program.state(id).type.dtype); });
  std::vector<Source> sources;
  std::vector<std::uint64_t> steps;
  for (const std::filesystem::path& path : snapshots) {
    const SnapshotInfo info = inspect_snapshot(path);
    sources.push_back({path, find_states(info, program, states, OtherStates::may_be_there)});
    steps.push_back(info.counters.step);
  }
  for (std::size_t i = 0; i < states.size(); ++i) {
    const DType dtype = program.state(states[i]).type.dtype;
    std::uint64_t at = 0;
    session.write_logical_in_pieces(states[i], [&](std::span<std::byte> piece) {
      // A stretch of them takes a piece of doubles.
      const std::size_t most = kPieceBytes / sizeof(double) * (static_cast<std::size_t>(bits_per_element(dtype)) / 8);
      for_each_piece(piece.size(), most, [&](std::size_t begin, std::size_t size) {
        average_piece(sources, i, at + begin, dtype, piece.subspan(begin, size));
      });
      at += piece.size();
    });
  }
  session.derive();
  return steps;
}

}  // namespace snug::train
