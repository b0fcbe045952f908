// Files as whole texts: read at once, written under a temporary name and renamed.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"
#include "core/json/json.h"

namespace foreshard {

namespace {

class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }
  bool close() {  // a full disk may show only here
    const int descriptor = descriptor_;
    descriptor_ = -1;
    return ::close(descriptor) == 0;
  }

 private:
  int descriptor_;
};

[[noreturn]] void fail(const std::string& path, const char* expected) { throw Error(path, "", std::strerror(errno), expected); }

bool write_all(int descriptor, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(descriptor, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

// A pipe or a device cannot be replaced by a rename: it is written into.
bool write_in_place(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

// The file itself where `path` is a symbolic link, so that the link survives.
std::string real_name(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (!resolved) return path;
  std::string name = resolved;
  std::free(resolved);
  return name;
}

int create_beside(const std::string& path, std::string& name) {
  int descriptor = -1;
  for (int attempt = 0; descriptor < 0 && attempt < 100; ++attempt) {
    name = path + "." + std::to_string(::getpid()) + "-" + std::to_string(attempt) + ".tmp";
    descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno != EEXIST) break;
  }
  return descriptor;
}

}  // namespace

std::string read_file(const std::string& path) {
  constexpr const char* expected = "a file that can be read";
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail(path, expected);
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) fail(path, expected);
  std::string text;
  std::size_t used = 0;
  for (;;) {
    text.resize(std::max<std::size_t>({used + 4096, used * 2, static_cast<std::size_t>(status.st_size) + 1}));
    const ssize_t n = ::read(file.get(), text.data() + used, text.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, expected);
    used += static_cast<std::size_t>(n);
    if (n == 0) break;
  }
  text.resize(used);
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  constexpr const char* expected = "a file that can be written";
  if (write_in_place(path)) {
    OpenFile file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.get() < 0 || !write_all(file.get(), text) || !file.close()) fail(path, expected);
    return;
  }
  const std::string target = real_name(path);
  std::string temporary;
  OpenFile file(create_beside(target, temporary));
  if (file.get() < 0) fail(path, expected);
  if (!write_all(file.get(), text) || !file.close() || ::rename(temporary.c_str(), target.c_str()) != 0) {
    const int reason = errno;
    ::unlink(temporary.c_str());
    errno = reason;
    fail(path, expected);
  }
}

}  // namespace foreshard
