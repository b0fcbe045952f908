// Memory that is a mapped file (mmap), for what a plan keeps on NVMe drives. The operating system writes its pages to the drive and reads
// them when they are accessed, so they need not fit in main memory.
#pragma once

#include <cstddef>
#include <utility>

#include "core/base/units.h"

namespace foreshard {

// Zeroed memory, aligned to a page. The file is in the folder $TMPDIR, else in /tmp. It has no name, so it vanishes with this object or
// with the process. The constructor throws DeviceError, with folder and reason, if the file cannot be created or there is no room for it.
class FileMemory {
 public:
  explicit FileMemory(Bytes bytes);
  ~FileMemory();
  FileMemory(FileMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  FileMemory& operator=(FileMemory&&) = delete;

  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace foreshard
