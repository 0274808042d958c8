#include "train/snapshot.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include "base/checksum.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/pieces.h"
#include "base/printable.h"
#include "io/elements.h"
#include "io/plan_file.h"
#include "io/weights_tensors.h"
#include "train/data_record.h"

namespace snug::train {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kChecksum = "snug.checksum";
constexpr std::string_view kExtra = "snug.extra.";
// The loss's second metric, whatever its name: files of all versions have it under this key.
constexpr const char* kTestScore = "snug.test_accuracy";
// Gradients are zero between steps, inputs are staged at every step, scalars follow from the counters.
constexpr std::array kSavedRoles{Role::parameter, Role::optimizer, Role::statistic};
constexpr std::size_t kChecksumBytes = sizeof(std::uint64_t);

bool is_checksum(std::string_view name) { return name == kChecksum; }

// The metadata of one snapshot, with its texts parsed as numbers.
class Metadata {
 public:
  Metadata(const std::map<std::string, std::string>& entries, std::string source)
      : entries_(entries), source_(std::move(source)) {}

  const std::string* find(const std::string& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second;
  }

  const std::string& text(const std::string& key) const {
    const std::string* value = find(key);
    if (value == nullptr) throw_user_error("{} is not a snapshot: it has no '{}'", source_, key);
    return *value;
  }

  template <typename T>
  T number(const std::string& key) const {
    const std::string& value = text(key);
    T result{};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc() || end != value.data() + value.size())
      throw_user_error("{}: '{}' is {}, not a number", source_, key, in_quotes(value));
    return result;
  }

  // For entries that older snapshots do not have.
  template <typename T>
  T number_or(const std::string& key, T fallback) const {
    return find(key) == nullptr ? fallback : number<T>(key);
  }

 private:
  const std::map<std::string, std::string>& entries_;
  std::string source_;
};

std::map<std::string, std::string> metadata_of(const Session& session, const Progress& progress) {
  const Session::Counters counters = session.counters();
  // A double's shortest text reads back as the same double.
  std::map<std::string, std::string> entries{{"snug.format", fmt::format("{}", kSnapshotFormat)},
                                             {"snug.model", session.plan().program.name},
                                             {"snug.seed", fmt::format("{}", counters.seed)},
                                             {"snug.step", fmt::format("{}", counters.step)},
                                             {"snug.learning_rate", fmt::format("{}", counters.learning_rate)},
                                             {"snug.loss_scale", fmt::format("{}", counters.loss_scale.scale)},
                                             {"snug.good_steps", fmt::format("{}", counters.loss_scale.good_steps)},
                                             {"snug.skipped_steps", fmt::format("{}", counters.loss_scale.skipped_steps)},
                                             {"snug.epoch", fmt::format("{}", progress.epoch)},
                                             {"snug.position", fmt::format("{}", progress.position)},
                                             {"snug.best_step", fmt::format("{}", progress.best_step)},
                                             {"snug.recipe", progress.recipe}};
  entries["snug.plan"] = io::print_plan(session.plan());
  if (progress.best_metric) entries["snug.best_metric"] = fmt::format("{}", *progress.best_metric);
  if (progress.measured_peak_bytes)
    entries["snug.measured_peak_bytes"] = fmt::format("{}", progress.measured_peak_bytes->count());
  if (progress.data) entries["snug.data"] = print_data_record(*progress.data);
  if (progress.last_evaluation) {
    entries["snug.test_step"] = fmt::format("{}", progress.last_evaluation->step);
    entries["snug.test_loss"] = fmt::format("{}", progress.last_evaluation->loss);
    entries[kTestScore] = fmt::format("{}", progress.last_evaluation->score);
  }
  for (const auto& [key, value] : progress.extras) entries[std::string(kExtra) + key] = value;
  return entries;
}

// UserError unless the last tensor is the checksum of everything before it.
void verify_checksum(const io::SafetensorsReader& reader, const std::string& source) {
  const auto& tensors = reader.header().tensors;
  if (tensors.empty() || tensors.back().name != kChecksum || tensors.back().bytes != kChecksumBytes)
    throw_user_error("{} is not a snapshot: it does not end with '{}'", source, kChecksum);
  Crc64 checksum;
  std::vector<std::byte> buffer(kPieceBytes);
  for_each_piece(tensors.back().begin, buffer.size(), [&](std::size_t begin, std::size_t size) {
    const auto piece = std::span(buffer).first(size);
    reader.file().read_at(begin, piece);
    checksum.update(piece);
  });
  std::array<std::byte, kChecksumBytes> stored{};
  reader.read(tensors.back(), stored);
  if (std::bit_cast<std::uint64_t>(stored) != checksum.value())
    throw_user_error("{} is damaged: its checksum is not that of its contents; use an earlier snapshot", source);
}

SnapshotInfo verified_info(const io::SafetensorsReader& reader) {
  const std::string source = "'" + reader.file().path().string() + "'";
  const Metadata metadata(reader.header().metadata, source);
  metadata.text("snug.format");
  verify_checksum(reader, source);
  SnapshotInfo info{.path = reader.file().path(), .format = metadata.number<int>("snug.format")};
  if (info.format != kSnapshotFormat)
    throw_user_error("{} has snapshot format {}; this Snug reads format {}", source, info.format, kSnapshotFormat);
  info.model = metadata.text("snug.model");
  info.counters = {.seed = metadata.number<std::uint64_t>("snug.seed"),
                   .step = metadata.number<std::uint64_t>("snug.step"),
                   .learning_rate = metadata.number<double>("snug.learning_rate"),
                   .loss_scale = {.scale = metadata.number<double>("snug.loss_scale"),
                                  .good_steps = metadata.number_or<std::uint64_t>("snug.good_steps", 0),
                                  .skipped_steps = metadata.number_or<std::uint64_t>("snug.skipped_steps", 0)}};
  info.progress = {.epoch = metadata.number<std::uint64_t>("snug.epoch"),
                   .position = metadata.number<std::uint64_t>("snug.position"),
                   .best_step = metadata.number<std::uint64_t>("snug.best_step"),
                   .recipe = metadata.text("snug.recipe")};
  if (metadata.find("snug.best_metric") != nullptr) info.progress.best_metric = metadata.number<double>("snug.best_metric");
  if (metadata.find("snug.test_step") != nullptr) {
    info.progress.last_evaluation = {.step = metadata.number<std::uint64_t>("snug.test_step"),
                                     .loss = metadata.number<double>("snug.test_loss"),
                                     .score = metadata.number<double>(kTestScore)};
  }
  if (metadata.find("snug.measured_peak_bytes") != nullptr)
    info.progress.measured_peak_bytes = Bytes(metadata.number<std::int64_t>("snug.measured_peak_bytes"));
  if (const std::string* data = metadata.find("snug.data")) info.progress.data = parse_data_record(*data, source);
  for (const auto& [key, value] : reader.header().metadata) {
    if (key.starts_with(kExtra)) info.progress.extras[key.substr(kExtra.size())] = value;
  }
  info.plan = metadata.text("snug.plan");
  info.tensors = reader.header().tensors;
  info.tensors.pop_back();  // the checksum
  return info;
}

// The step of a snapshot's name, if it is one.
std::optional<std::uint64_t> step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  constexpr std::string_view kBefore = "step_";
  constexpr std::string_view kBehind = ".safetensors";
  if (!name.starts_with(kBefore) || !name.ends_with(kBehind) || name.size() <= kBefore.size() + kBehind.size())
    return std::nullopt;
  std::uint64_t step = 0;
  const char* last = name.data() + name.size() - kBehind.size();
  const auto [end, error] = std::from_chars(name.data() + kBefore.size(), last, step);
  if (error != std::errc() || end != last) return std::nullopt;
  return step;
}

struct NumberedFile {
  std::uint64_t step = 0;
  fs::path path;
};

// Newest first. A folder that is not there holds none.
std::vector<NumberedFile> snapshots_of(const fs::path& run_folder) {
  std::vector<NumberedFile> files;
  std::error_code error;
  for (fs::directory_iterator entry(run_folder / "snapshots", error), end; !error && entry != end; entry.increment(error)) {
    if (const auto step = step_of(entry->path())) files.push_back({*step, entry->path()});
  }
  std::sort(files.begin(), files.end(), [](const NumberedFile& a, const NumberedFile& b) { return a.step > b.step; });
  return files;
}

}  // namespace

void save_snapshot(const fs::path& path, const Session& session, const Progress& progress) {
  const Program& program = session.plan().program;
  const std::vector<StateId> states = io::states_of(program, kSavedRoles);
  std::vector<io::TensorInfo> tensors;
  tensors.reserve(states.size() + 1);
  for (const StateId id : states) {
    tensors.push_back(io::tensor_of(program.state(id)));
    if (is_checksum(tensors.back().name)) throw_user_error("a state cannot be called '{}' in a snapshot", kChecksum);
  }
  tensors.push_back({.name = std::string(kChecksum), .dtype = io::TensorDType::u8, .shape = {kChecksumBytes}});

  io::AtomicFile file(path);
  Crc64 checksum;
  const auto write = [&](std::span<const std::byte> bytes) {
    checksum.update(bytes);
    file.write(bytes);
  };
  {
    const std::string header = io::make_safetensors_header(tensors, metadata_of(session, progress));
    write(std::as_bytes(std::span(header)));
  }
  for (const StateId id : states) {
    const State& state = program.state(id);
    session.read_logical_in_pieces(id, [&](std::span<const std::byte> piece) {
      if (is_floating(state.type.dtype) && !io::all_finite(state.type.dtype, piece))
        throw NotFinite(fmt::format("'{}' holds an element that is not finite", state.name));
      write(piece);
    });
  }
  const std::uint64_t value = checksum.value();
  file.write(std::as_bytes(std::span(&value, 1)));
  file.commit();
}

Progress load_snapshot(const fs::path& path, Session& session) {
  const io::SafetensorsReader reader(path);
  const SnapshotInfo info = verified_info(reader);
  const Program& program = session.plan().program;
  const std::vector<StateId> states = io::states_of(program, kSavedRoles);
  // A program that only evaluates has no place for what the optimizer keeps.
  const bool trains = program.find_section(SectionKind::update) != nullptr;
  const std::vector<std::uint64_t> begins =
      find_states(info, program, states, trains ? OtherStates::are_refused : OtherStates::may_be_there);
  session.restore(info.counters);  // throws before anything has changed
  session.initialize_all_but(states);
  for (std::size_t i = 0; i < states.size(); ++i) {
    std::uint64_t at = begins[i];
    session.write_logical_in_pieces(states[i], [&](std::span<std::byte> piece) {
      reader.file().read_at(at, piece);
      at += piece.size();
    });
  }
  session.derive();
  return info.progress;
}

std::vector<std::uint64_t> find_states(const SnapshotInfo& snapshot, const Program& program, std::span<const StateId> states,
                                       OtherStates others) {
  const std::string source = "'" + snapshot.path.string() + "'";
  std::vector<io::TensorInfo> wanted;
  wanted.reserve(states.size());
  for (const StateId id : states) wanted.push_back(io::tensor_of(program.state(id)));
  const io::SafetensorsHeader header{.tensors = snapshot.tensors, .metadata = {}};
  const io::TensorMatch match = io::match_tensors(
      wanted, header, {.source = source, .model = program.name, .may_have_more = others == OtherStates::may_be_there});
  std::vector<std::uint64_t> begins;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (match.tensors[i]->dtype != wanted[i].dtype) {
      throw_user_error("{} has {} as {}, but the session stores {}; use the snapshot's precision, or export its weights", source,
                       in_quotes(match.tensors[i]->name), name_of(match.tensors[i]->dtype), name_of(wanted[i].dtype));
    }
    begins.push_back(match.tensors[i]->begin);
  }
  return begins;
}

SnapshotInfo inspect_snapshot(const fs::path& path) { return verified_info(io::SafetensorsReader(path)); }

fs::path snapshot_path(const fs::path& run_folder, std::uint64_t step) {
  return run_folder / "snapshots" / fmt::format("step_{:09}.safetensors", step);
}

FoundSnapshot find_latest_good(const fs::path& run_folder) {
  FoundSnapshot found;
  for (const NumberedFile& file : snapshots_of(run_folder)) {
    try {
      found.snapshot = inspect_snapshot(file.path);
      break;
    } catch (const UserError& error) {
      found.warnings.emplace_back(error.what());
    }
  }
  return found;
}

std::vector<fs::path> last_snapshots(const fs::path& run_folder, std::size_t count) {
  const std::vector<NumberedFile> files = snapshots_of(run_folder);
  if (files.size() < count) {
    throw_user_error("'{}' has {}, not {}; ask for fewer, or train with --keep {}, which keeps more of them", run_folder.string(),
                     counted(files.size(), "snapshot"), count, count);
  }
  std::vector<fs::path> last;
  for (std::size_t i = count; i-- > 0;) last.push_back(files[i].path);
  return last;
}

void prune_snapshots(const fs::path& run_folder, std::size_t keep, std::optional<std::uint64_t> best_step) {
  std::size_t kept = 0;
  for (const NumberedFile& file : snapshots_of(run_folder)) {
    if (kept++ < std::max<std::size_t>(keep, 1) || file.step == best_step) continue;
    std::error_code ignored;  // an extra snapshot does no harm
    fs::remove(file.path, ignored);
  }
}

void set_later_snapshots_aside(const fs::path& run_folder, std::uint64_t step) {
  for (const NumberedFile& file : snapshots_of(run_folder)) {
    if (file.step <= step) continue;
    fs::path aside = file.path;
    aside += ".damaged";
    std::error_code error;
    fs::rename(file.path, aside, error);
    if (error) throw_user_error("'{}' cannot be renamed: {}", file.path.string(), error.message());
  }
}

}  // namespace snug::train
