#include "core/base/file_lock.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/base/error.h"
#include "core/base/file_replacement.h"
#include "core/base/printable.h"

namespace foreshard {

namespace {

constexpr int kLooks = 50;  // the last process may be ending
constexpr std::chrono::milliseconds kBetweenLooks{20};
constexpr std::size_t kMostHolder = 100;

std::string lock_name(const std::string& path) {
  const std::string target = link_target(path);
  const std::size_t name = target.rfind('/') + 1;  // npos + 1 is 0
  return target.substr(0, name) + "." + target.substr(name).substr(0, 200) + ".foreshard-lock";
}

// Not open: errno says why; EAGAIN: another process has just removed it.
OpenFile open_lock(const std::string& name) {
  constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  OpenFile file(::open(name.c_str(), O_CREAT | O_EXCL | kFlags, 0666));
  if (file.open()) {
    // Whatever the umask: in a shared folder, a killed process of another user must not be in the way for ever.
    static_cast<void>(::fchmod(file.descriptor(), 0666));
    return file;
  }
  if (errno != EEXIST) return file;
  file = OpenFile(::open(name.c_str(), kFlags));
  if (!file.open() && errno == ENOENT) errno = EAGAIN;
  struct stat status = {};
  if (file.open() && ::fstat(file.descriptor(), &status) == 0 && (!S_ISREG(status.st_mode) || status.st_nlink > 1))
    throw Error(name, "", "a file of something else", "a lock of foreshard, or nothing");  // it is written to
  return file;
}

// Whether the file still has its name: the process that held the lock before removed it when it released the lock.
bool has_name(int descriptor, const std::string& name) {
  struct stat own = {}, named = {};
  return ::fstat(descriptor, &own) == 0 && ::lstat(name.c_str(), &named) == 0 && own.st_ino == named.st_ino &&
         own.st_dev == named.st_dev;
}

std::string holder_of(int descriptor) {
  std::array<char, kMostHolder> text = {};
  const ssize_t length = ::pread(descriptor, text.data(), text.size(), 0);
  const std::string holder(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return holder.empty() ? "another process" : printable(holder, kMostHolder);
}

void write_holder(int descriptor) {
  std::array<char, 64> host = {};
  static_cast<void>(::gethostname(host.data(), host.size() - 1));
  const std::string text = "process " + std::to_string(::getpid()) + " on " + host.data();
  if (::ftruncate(descriptor, 0) == 0) static_cast<void>(!::pwrite(descriptor, text.data(), text.size(), 0));
}

}  // namespace

LockAnswer lock_file(int descriptor) {
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  if (::fcntl(descriptor, F_OFD_SETLK, &whole) == 0) return LockAnswer::Locked;
  return errno == EAGAIN || errno == EACCES ? LockAnswer::Held : LockAnswer::No;
}

FileLock::FileLock(const std::string& path, IfHeld if_held) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) return;
  const std::string name = lock_name(path);
  for (int look = 0; name_.empty();) {
    OpenFile file = open_lock(name);
    if (!file.open() && errno == EAGAIN) continue;
    if (!file.open()) throw Error(path, "", std::strerror(errno), "a file that can be written");
    switch (lock_file(file.descriptor())) {
      case LockAnswer::Locked:
        if (!has_name(file.descriptor(), name)) continue;
        write_holder(file.descriptor());
        file_ = std::move(file);
        name_ = name;
        return;
      case LockAnswer::Held:
        if (++look >= kLooks && if_held == IfHeld::Refuse)
          throw Error(path, "", "a file that " + holder_of(file.descriptor()) + " is writing", "one that nobody else writes");
        std::this_thread::sleep_for(kBetweenLooks);
        continue;
      case LockAnswer::No: ::unlink(name.c_str()); return;
    }
  }
}

FileLock::~FileLock() {
  if (file_.open()) ::unlink(name_.c_str());  // before the lock ends
}

}  // namespace foreshard
