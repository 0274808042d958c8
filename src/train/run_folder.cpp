#include "train/run_folder.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/file.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/plan_file.h"
#include "train/data_record.h"

namespace snug::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLog = "log.txt";
constexpr const char* kSnapshots = "snapshots";
constexpr std::uint64_t kMostDataBytes = 100'000'000;  // enough for 100,000 classes with long names

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw_user_error("folder '{}' cannot be made: {}", path.string(), error.message());
}

// Held as long as the handle is open, at most until the process ends: a run that was killed leaves no stale lock.
io::FileHandle take_lock(const fs::path& folder) {
  const fs::path path = folder / "lock";
  io::FileHandle lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock.open()) throw_user_error("folder '{}' cannot be written to: {}", folder.string(), std::strerror(errno));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      throw_user_error("another process is writing to run folder '{}'; wait for it, or choose another folder", folder.string());
    throw_user_error("run folder '{}' cannot be locked: {}", folder.string(), std::strerror(errno));
  }
  return lock;
}

bool holds_run(const fs::path& folder) {
  return fs::exists(folder / kRecipeFile) || fs::exists(folder / kMetricsFile) || fs::exists(folder / kSnapshots);
}

// Files that a killed process left half written.
void remove_temporaries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> stale;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (io::is_temporary_name(entry->path().filename().string())) stale.push_back(entry->path());
  }
  for (const fs::path& path : stale) fs::remove(path, error);
}

// The step of a metrics line; nothing when the line is damaged.
std::optional<std::uint64_t> step_of_line(const std::string& line) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto step = json.find("step");
  if (step == json.end() || !step->is_number_unsigned()) return std::nullopt;
  return step->get<std::uint64_t>();
}

}  // namespace

bool belongs_to_run(const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(path, error);
  if (error) return false;
  const fs::path folder = whole.parent_path();
  if (folder.filename() == kSnapshots && fs::exists(folder.parent_path() / kRecipeFile, error)) return true;
  if (!fs::exists(folder / kRecipeFile, error) || !fs::exists(folder / kMetricsFile, error)) return false;
  const fs::path name = whole.filename();
  return name == kRecipeFile || name == kPlanFile || name == kDataFile || name == kMetricsFile || name == kLog || name == "lock";
}

std::string to_json(const MetricsLine& line, const ProgramLoss& loss) {
  const auto& [loss_name, score_name] = loss.facts->metrics;
  nlohmann::ordered_json json;
  json["step"] = line.step;
  json["epoch"] = line.epoch;
  const auto add = [&](const std::string& key, const auto& value) {
    if (value) json[key] = *value;
  };
  const auto add_metric = [&](std::string_view prefix, std::string_view name, const auto& value) {
    if (!name.empty()) add(fmt::format("{}{}", prefix, name), value);
  };
  add_metric("", loss_name, line.loss);
  add_metric("", score_name, line.score);
  add("learning_rate", line.learning_rate);
  add("loss_scale", line.loss_scale);
  add(fmt::format("{}_per_second", loss.facts->unit), line.units_per_second);
  add("resident_bytes", line.resident_bytes);
  add("skipped_steps", line.skipped_steps);
  add("measured_peak_bytes", line.measured_peak_bytes);
  add("process_overhead_bytes", line.process_overhead_bytes);
  add("device_overhead_bytes", line.device_overhead_bytes);
  add_metric("test_", loss_name, line.test_loss);
  add_metric("test_", score_name, line.test_score);
  add("pruned", line.pruned);
  add("threshold", line.threshold);
  for (const auto& [layer, count] : line.nonzeros) json["nonzeros"][layer] = count;
  return json.dump();
}

RunFolder::RunFolder(fs::path path, io::FileHandle lock)
    : path_(std::move(path)), lock_(std::move(lock)), metrics_(path_ / kMetricsFile), log_(path_ / kLog) {
  make_folder(path_ / kSnapshots);
}

RunFolder RunFolder::create(const fs::path& path, const settings::Recipe& recipe, const Plan* plan,
                            const data::Description* data) {
  const std::string text = settings::print_recipe(recipe);
  make_folder(path);
  io::FileHandle lock = take_lock(path);
  if (holds_run(path)) throw_user_error("folder '{}' holds a run already; resume it, or choose another folder", path.string());
  if (plan != nullptr) io::write_plan_file(path / kPlanFile, *plan);
  if (data != nullptr) io::write_text_file(path / kDataFile, print_data_record(*data) + "\n");
  io::write_text_file(path / kRecipeFile, text);
  return {path, std::move(lock)};
}

RunFolder RunFolder::resume(const fs::path& path) {
  if (!fs::exists(path / kRecipeFile)) throw_user_error("folder '{}' holds no run to resume", path.string());
  io::FileHandle lock = take_lock(path);
  remove_temporaries(path);
  remove_temporaries(path / kSnapshots);
  return {path, std::move(lock)};
}

settings::Recipe RunFolder::recipe() const { return settings::read_recipe(path_ / kRecipeFile); }

std::filesystem::path RunFolder::plan_path() const { return path_ / kPlanFile; }

std::optional<data::Description> RunFolder::data() const {
  const fs::path path = path_ / kDataFile;
  if (!fs::exists(path)) return std::nullopt;
  return parse_data_record(io::read_text_file(path, kMostDataBytes), "'" + path.string() + "'");
}

void RunFolder::replace(const data::Description& data) { io::write_text_file(path_ / kDataFile, print_data_record(data) + "\n"); }

void RunFolder::replace(const Plan& plan) { io::write_plan_file(path_ / kPlanFile, plan); }

void RunFolder::rewind(std::uint64_t step) {
  std::ifstream lines(path_ / kMetricsFile);
  io::AtomicFile kept(path_ / kMetricsFile);
  for (std::string line; std::getline(lines, line);) {
    const auto line_step = step_of_line(line);
    if (!line_step || *line_step > step) continue;
    line += '\n';
    kept.write(std::as_bytes(std::span(line)));
  }
  kept.commit();
  metrics_ = io::AppendFile(path_ / kMetricsFile);  // the rename replaced the old file
  set_later_snapshots_aside(path_, step);
}

void RunFolder::add_metrics(const MetricsLine& line, const ProgramLoss& loss) { metrics_.append_line(to_json(line, loss)); }

void RunFolder::log(std::string_view line) { log_.append_line(line); }

fs::path RunFolder::save_snapshot(const Session& session, const Progress& progress, std::size_t keep) {
  fs::path path = snapshot_path(path_, session.step());
  train::save_snapshot(path, session, progress);
  prune_snapshots(path_, keep, progress.best_metric ? std::optional(progress.best_step) : std::nullopt);
  return path;
}

}  // namespace snug::train
