// Files as whole texts: read at once, replaced as a whole.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "core/base/file_replacement.h"
#include "core/json/json.h"

namespace foreshard {

namespace {

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

}  // namespace

std::string read_file(const std::string& path) {
  constexpr const char* expected = "a file that can be read";
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.descriptor() < 0) fail(path, expected);
  struct stat status = {};
  if (::fstat(file.descriptor(), &status) != 0) fail(path, expected);
  std::string text;
  std::size_t used = 0;
  for (;;) {
    text.resize(std::max<std::size_t>({used + 4096, used * 2, static_cast<std::size_t>(status.st_size) + 1}));
    const ssize_t n = ::read(file.descriptor(), text.data() + used, text.size() - used);
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
    if (file.descriptor() < 0 || !write_all(file.descriptor(), text) || !file.close()) fail(path, expected);
    return;
  }
  FileReplacement replacement(path);
  if (!write_all(replacement.descriptor(), text) || !replacement.finish()) fail(path, expected);
}

}  // namespace foreshard
