// What a path may name, and what is left of it after a file was written there.
#include "io/file_io.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "support/files.h"
#include "support/messages.h"

namespace snug::io {

using support::bytes_of;
using support::message_of;
using support::TemporaryFolder;
using support::write_bytes;

namespace {

namespace fs = std::filesystem;

std::string refusal_of(const fs::path& path) {
  return message_of<UserError>([&] { write_text_file(path, "new"); });
}

std::size_t entries_of(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777U;
}

TEST(OutputFile, LinkStaysAndItsTargetIsReplaced) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "elsewhere");
  write_bytes(folder / "elsewhere/target", "old");
  fs::create_symlink("elsewhere/target", folder / "link");
  fs::create_symlink("link", folder / "link_to_link");
  write_text_file(folder / "link_to_link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link_to_link"));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(bytes_of(folder / "elsewhere/target"), "new");
  EXPECT_EQ(entries_of(folder / "elsewhere"), 1U) << "no temporary file is left";
}

TEST(OutputFile, TargetOfADanglingLinkIsMade) {
  const TemporaryFolder folder;
  fs::create_symlink(folder / "target", folder / "link");
  write_text_file(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(bytes_of(folder / "target"), "new");
}

TEST(OutputFile, LoopOfLinksIsRefused) {
  const TemporaryFolder folder;
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  EXPECT_TRUE(support::mentions(refusal_of(folder / "a"), {(folder / "a").string(), "symbolic"}));
  EXPECT_TRUE(fs::is_symlink(folder / "a"));
}

TEST(OutputFile, PipeIsWrittenIntoAndStaysAPipe) {
  const TemporaryFolder folder;
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = bytes_of(pipe); });
  write_text_file(pipe, "new");
  reader.join();
  EXPECT_EQ(got, "new");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(OutputFile, DeviceIsWrittenIntoAndStaysADevice) {
  const TemporaryFolder folder;
  const fs::path device = folder / "null";
  // Only root makes devices; others may look at the system's, which they could not replace.
  const bool made = ::mknod(device.c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0;
  write_text_file(made ? device : fs::path("/dev/null"), "new");
  EXPECT_TRUE(fs::is_character_file(made ? device : fs::path("/dev/null")));
  EXPECT_EQ(entries_of(folder.path()), made ? 1U : 0U);
}

TEST(OutputFile, FullDeviceIsAFullDisk) {
  EXPECT_TRUE(support::mentions(message_of<DiskFull>([] { write_text_file("/dev/full", "new"); }), {"disk", "'/dev'", "'full'"}));
}

TEST(OutputFile, FoldersSocketsAndBlockDevicesAreRefusedAndStay) {
  const TemporaryFolder folder;
  EXPECT_TRUE(support::mentions(refusal_of(folder.path()), {"'" + folder.string() + "'", "is a folder"}));
  const fs::path path = folder / "socket";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  const FileHandle socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(support::mentions(refusal_of(path), {path.string(), "socket"}));
  EXPECT_TRUE(fs::is_socket(path));
  const fs::path block = folder / "block";
  if (::mknod(block.c_str(), S_IFBLK | 0600, makedev(7, 255)) == 0) {
    EXPECT_TRUE(support::mentions(refusal_of(block), {block.string(), "block"}));
    EXPECT_TRUE(fs::is_block_file(block));
  }
}

// A shell's `> file` keeps its place in the file: what comes after must follow, not overwrite.
TEST(OutputFile, OpenDescriptorIsWrittenWhereItStands) {
  const TemporaryFolder folder;
  const FileHandle file(::open((folder / "out").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::write(file.get(), "before ", 7), 7);
  write_text_file("/dev/fd/" + std::to_string(file.get()), "new");
  fs::create_symlink("/dev/fd/" + std::to_string(file.get()), folder / "link");
  write_text_file(folder / "link", " and again");
  ASSERT_EQ(::write(file.get(), " after", 6), 6);
  EXPECT_EQ(bytes_of(folder / "out"), "before new and again after");
  EXPECT_EQ(entries_of(folder.path()), 2U);
  EXPECT_TRUE(support::mentions(refusal_of("/dev/fd/987654"), {"'/dev/fd/987654'", "Bad file descriptor"}));
}

TEST(OutputFile, PermissionsOfAReplacedFileStayAndNewFilesFollowTheMask) {
  const TemporaryFolder folder;
  write_bytes(folder / "private", "old");
  ASSERT_EQ(::chmod((folder / "private").c_str(), 0600), 0);
  write_bytes(folder / "shared", "old");
  ASSERT_EQ(::chmod((folder / "shared").c_str(), 0666), 0);
  const mode_t before = ::umask(027);
  write_text_file(folder / "private", "new");
  write_text_file(folder / "shared", "new");
  write_text_file(folder / "fresh", "new");
  ::umask(before);
  EXPECT_EQ(mode_of(folder / "private"), 0600U);
  EXPECT_EQ(mode_of(folder / "shared"), 0666U);
  EXPECT_EQ(mode_of(folder / "fresh"), 0640U);
}

TEST(OutputFile, OwnerOfAReplacedFileStaysWhereWeMaySay) {
  const TemporaryFolder folder;
  write_bytes(folder / "file", "old");
  if (::chown((folder / "file").c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root gives files away";
  write_text_file(folder / "file", "new");
  struct stat status {};
  ASSERT_EQ(::stat((folder / "file").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 65534U);
  EXPECT_EQ(status.st_gid, 65534U);
}

TEST(OutputFile, WithoutCommitNothingChanges) {
  const TemporaryFolder folder;
  write_bytes(folder / "target", "old");
  fs::create_symlink("target", folder / "link");
  {
    AtomicFile file(folder / "link");
    const std::string text = "new";
    file.write(std::as_bytes(std::span(text)));
  }
  EXPECT_EQ(bytes_of(folder / "target"), "old");
  EXPECT_EQ(entries_of(folder.path()), 2U);
  require_writable(folder / "other");
  EXPECT_EQ(entries_of(folder.path()), 2U);
}

}  // namespace
}  // namespace snug::io
