// Files that are replaced as a whole: what readers, crashes, other writers and other people's links see of it.
#include "core/base/file_replacement.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "tests/changed_text.h"

namespace foreshard::file_replacement_test {
namespace {

namespace fs = std::filesystem;

struct Replacement : testing::Test {
  void SetUp() override {
    folder = fs::temp_directory_path() / ("foreshard-replacement-" + std::to_string(::getpid()));
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }
  std::string path(const std::string& name) const { return (folder / name).string(); }
  std::string text(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put(const std::string& name, const std::string& words) const { std::ofstream(path(name), std::ios::binary) << words; }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder)) all.insert(entry.path().filename().string());
    return all;
  }
  static void write(const FileReplacement& file, const std::string& words) {
    ASSERT_EQ(::write(file.descriptor(), words.data(), words.size()), static_cast<ssize_t>(words.size()));
  }
  fs::path folder = {};
};

TEST_F(Replacement, TheOldFileIsThereUntilTheNewOneIsComplete) {
  put("a", "old");
  {
    FileReplacement file(path("a"));
    write(file, "new");
    EXPECT_EQ(text("a"), "old");
    EXPECT_TRUE(file.finish());
    EXPECT_EQ(text("a"), "new");
  }
  { write(FileReplacement(path("a")), "given up"); }
  EXPECT_EQ(text("a"), "new");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

// Each has a temporary file of its own, whatever the order: the file is that of the last one that finished, and nobody writes into it any more.
TEST_F(Replacement, TwoWritersOfOneFile) {
  FileReplacement first(path("a")), second(path("a"));
  write(first, "of the ");
  write(second, "of the second");
  EXPECT_TRUE(second.finish());
  EXPECT_EQ(text("a"), "of the second");
  write(first, "first");
  EXPECT_EQ(text("a"), "of the second");
  EXPECT_TRUE(first.finish());
  EXPECT_EQ(text("a"), "of the first");
}

// Somebody who knows the names of temporary files puts a link there: it is not followed.
TEST_F(Replacement, ALinkAtATemporaryNameIsNotFollowed) {
  put("precious", "mine");
  for (const char* name : {"a.part", "a.tmp"}) fs::create_symlink(path("precious"), path(name));
  FileReplacement file(path("a"));
  write(file, "new");
  EXPECT_TRUE(file.finish());
  EXPECT_EQ(text("precious"), "mine");
  EXPECT_TRUE(fs::is_symlink(path("a.part")));
  // The name cannot be foreseen: 48 random bits.
  const FileReplacement one(path("a")), other(path("a"));
  EXPECT_NE(one.temporary(), other.temporary());
}

// The link stays, also one that leads nowhere yet; the temporary file lies beside the file, which may be on another disk than the link.
TEST_F(Replacement, WhereTheNameIsALinkItsFileIsReplaced) {
  fs::create_directory(path("disk"));
  put("disk/real", "old");
  fs::create_symlink("disk/real", path("near"));
  fs::create_symlink(path("near"), path("far"));
  fs::create_symlink("disk/later", path("nowhere"));
  for (const auto& [link, real] : {std::pair("far", "disk/real"), std::pair("nowhere", "disk/later")}) {
    FileReplacement file(path(link));
    EXPECT_EQ(fs::path(file.temporary()).parent_path(), path("disk"));
    write(file, "new");
    EXPECT_TRUE(file.finish());
    EXPECT_TRUE(fs::is_symlink(path(link)));
    EXPECT_EQ(text(real), "new");
  }
  fs::create_symlink("round", path("about"));
  fs::create_symlink("about", path("round"));
  EXPECT_EQ(error_of([&] { FileReplacement(path("round")); }),
            path("round") + ": found Too many levels of symbolic links, expected a file that can be written");
}

// In a folder such as /tmp, somebody else's link could lead to any file of this user.
TEST_F(Replacement, AnotherUsersLinkInAFolderOfAllIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a link of another user";
  put("precious", "mine");
  fs::create_directory(path("all"));
  fs::create_symlink(path("precious"), path("all/link"));
  ASSERT_EQ(::lchown(path("all/link").c_str(), 1234, 1234), 0);
  EXPECT_EQ(link_target(path("all/link")), path("precious"));  // nobody else can write to the folder
  ASSERT_EQ(::chmod(path("all").c_str(), 01777), 0);
  EXPECT_EQ(error_of([&] { FileReplacement(path("all/link")); }),
            path("all/link") + ": found a symbolic link of another user, expected a file that can be written");
  ASSERT_EQ(::lchown(path("all/link").c_str(), 0, 0), 0);
  EXPECT_EQ(link_target(path("all/link")), path("precious"));
}

TEST_F(Replacement, PermissionsStay) {
  put("secret", "old");
  ASSERT_EQ(::chmod(path("secret").c_str(), 0600), 0);
  FileReplacement file(path("secret"));
  EXPECT_TRUE(file.finish());
  EXPECT_EQ(fs::status(path("secret")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

// A process that is killed leaves its temporary file behind. The next writer of the same file removes it, and nothing else: not that of a writer
// at work, and no file of another name.
TEST_F(Replacement, WhatAKilledWriterLeftIsRemoved) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const FileReplacement file(path("a"));
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(names().size(), 1U);
  const std::string left = *names().begin();
  for (const char* other : {"a.part", "a.0123456789ab.part.x", "a.0123456789xy.part", "b.0123456789ab.part"})
    put(other, "mine");
  const FileReplacement at_work(path("a"));
  EXPECT_FALSE(names().contains(left));
  const std::size_t before = names().size();
  EXPECT_EQ(before, 5U);
  { const FileReplacement next(path("a")); }
  EXPECT_EQ(names().size(), before);
  EXPECT_TRUE(fs::exists(at_work.temporary()));
}

TEST_F(Replacement, AFileThatCannotBeReplacedIsNamed) {
  EXPECT_EQ(error_of([&] { FileReplacement(path("no/such")); }),
            path("no/such") + ": found No such file or directory, expected a file that can be written");
  fs::create_directory(path("folder"));
  FileReplacement file(path("folder"));
  EXPECT_FALSE(file.finish());
  EXPECT_EQ(errno, EISDIR);
}

// The name of the temporary file is no longer than a name may be.
TEST_F(Replacement, ALongName) {
  const std::string name(255, 'n');
  FileReplacement file(path(name));
  write(file, "x");
  EXPECT_TRUE(file.finish());
  EXPECT_EQ(text(name), "x");
}

}  // namespace
}  // namespace foreshard::file_replacement_test
