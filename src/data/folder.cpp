#include "data/folder.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <dirent.h>
#include <memory>
#include <string>
#include <sys/stat.h>

#include "base/error.h"
#include "data/file.h"

namespace snug::data {

void for_each_entry(const std::filesystem::path& folder, const std::function<void(std::string_view name, EntryKind kind)>& take) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(folder.c_str()), ::closedir);
  if (listing == nullptr) throw_user_error("folder {} cannot be read: {}", folder.string(), system_message(errno));
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(listing.get());
    if (entry == nullptr && errno != 0) throw_user_error("folder {} cannot be read: {}", folder.string(), system_message(errno));
    if (entry == nullptr) return;
    if (entry->d_name[0] == '.') continue;
    EntryKind kind = entry->d_type == DT_DIR ? EntryKind::folder : entry->d_type == DT_REG ? EntryKind::file : EntryKind::other;
    if (entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN) {
      struct stat status {};
      if (::fstatat(::dirfd(listing.get()), entry->d_name, &status, 0) != 0) {
        throw_user_error("{} cannot be read: {}", (folder / entry->d_name).string(), system_message(errno));
      }
      kind = S_ISDIR(status.st_mode) ? EntryKind::folder : S_ISREG(status.st_mode) ? EntryKind::file : EntryKind::other;
    }
    take(entry->d_name, kind);
  }
}

bool has_ending(std::string_view name, std::initializer_list<std::string_view> endings) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string ending(name.substr(dot + 1));
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::find(endings, ending) != endings.end();
}

}  // namespace snug::data
