#include "core/base/file_replacement.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>

#include "core/base/error.h"
#include "core/base/file_lock.h"

namespace foreshard {

namespace {

constexpr const char* kWritable = "a file that can be written";
constexpr const char* kEnding = ".part";
constexpr std::size_t kRandomDigits = 12;
constexpr std::size_t kLongestStem = 200;  // of 255 bytes that a name may have
constexpr int kMostLinks = 40;             // as Linux follows
constexpr int kMostAttempts = 100;

std::string name_in_folder(const std::string& path) { return path.substr(path.rfind('/') + 1); }  // npos + 1 is 0

// What the random digits of a temporary name follow.
std::string stem_of(const std::string& target) { return name_in_folder(target).substr(0, kLongestStem) + "."; }

std::string random_digits() {
  std::random_device random;
  std::array<char, kRandomDigits + 1> digits = {};
  std::snprintf(digits.data(), digits.size(), "%08x%04x", random(), random() & 0xFFFFU);
  return digits.data();
}

bool is_temporary_name(const std::string& name, const std::string& stem) {
  return name.size() == stem.size() + kRandomDigits + std::strlen(kEnding) && name.starts_with(stem) &&
         name.ends_with(kEnding) &&
         name.substr(stem.size(), kRandomDigits).find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Whoever writes a temporary file holds a lock on it, which the system releases when the process ends. Returns false if somebody else has the
// lock or has removed the file. On a file system without locks it is true.
bool lock_temporary(int descriptor) {
  if (lock_file(descriptor) == LockAnswer::Held) return false;
  struct stat status = {};
  return ::fstat(descriptor, &status) == 0 && status.st_nlink > 0;
}

void remove_if_abandoned(const std::string& name) {
  const OpenFile file(::open(name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status = {};
  if (!file.open() || ::fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid())
    return;
  if (lock_file(file.descriptor()) == LockAnswer::Locked) ::unlink(name.c_str());
}

void remove_abandoned(const std::string& target) {
  const std::string stem = stem_of(target);
  std::error_code problem;
  for (std::filesystem::directory_iterator entry(folder_of_file(target), problem), end; !problem && entry != end;
       entry.increment(problem))
    if (is_temporary_name(entry->path().filename().string(), stem)) remove_if_abandoned(entry->path().string());
}

void expect_own_link(const std::string& link, const struct stat& status) {
  struct stat folder = {};
  if (::stat(folder_of_file(link).c_str(), &folder) != 0) return;
  const bool anyone = (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0;
  if (anyone && status.st_uid != ::geteuid() && status.st_uid != folder.st_uid)
    throw Error(link, "", "a symbolic link of another user", kWritable);
}

}  // namespace

std::string folder_of_file(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

std::string link_target(const std::string& path) {
  std::string at = path;
  for (int links = 0; links <= kMostLinks; ++links) {
    struct stat status = {};
    if (::lstat(at.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return at;
    expect_own_link(at, status);
    std::array<char, 4097> text = {};
    const ssize_t length = ::readlink(at.c_str(), text.data(), text.size() - 1);
    if (length <= 0) throw Error(path, "", std::strerror(errno), kWritable);
    const std::string next(text.data(), static_cast<std::size_t>(length));
    const std::size_t slash = at.rfind('/');
    at = next.starts_with('/') || slash == std::string::npos ? next : at.substr(0, slash + 1) + next;
  }
  throw Error(path, "", std::strerror(ELOOP), kWritable);
}

FileReplacement::FileReplacement(const std::string& path) : target_(link_target(path)) {
  remove_abandoned(target_);
  const std::string stem = target_.substr(0, target_.rfind('/') + 1) + stem_of(target_);
  errno = EEXIST;
  for (int attempt = 0; temporary_.empty() && attempt < kMostAttempts; ++attempt) {
    const std::string name = stem + random_digits() + kEnding;
    OpenFile file(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!file.open() && errno != EEXIST) break;
    if (!file.open() || !lock_temporary(file.descriptor())) continue;
    file_ = std::move(file);
    temporary_ = name;
  }
  if (temporary_.empty()) throw Error(path, "", std::strerror(errno), kWritable);
  struct stat before = {};
  if (::stat(target_.c_str(), &before) == 0 && S_ISREG(before.st_mode))
    static_cast<void>(::fchmod(descriptor(), before.st_mode & 0777U));
}

FileReplacement::~FileReplacement() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

bool FileReplacement::finish() {
  if (::fsync(descriptor()) != 0 || ::rename(temporary_.c_str(), target_.c_str()) != 0) return false;
  temporary_.clear();
  // So that the new name survives a power failure too.
  const OpenFile folder(::open(folder_of_file(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.open()) static_cast<void>(::fsync(folder.descriptor()));
  file_.close();
  return true;
}

}  // namespace foreshard
