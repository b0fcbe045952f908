// A file descriptor that is closed at the end of its scope.
#pragma once

#include <unistd.h>

#include <utility>

namespace foreshard {

class OpenFile {
 public:
  OpenFile() = default;
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  OpenFile(OpenFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    if (this != &other) close(), descriptor_ = std::exchange(other.descriptor_, -1);
    return *this;
  }
  ~OpenFile() { close(); }

  bool open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }  // negative: not open
  bool close() {                                  // false: errno says why; a full disk may show only here
    const int descriptor = std::exchange(descriptor_, -1);
    return descriptor < 0 || ::close(descriptor) == 0;
  }

 private:
  int descriptor_ = -1;
};

}  // namespace foreshard
