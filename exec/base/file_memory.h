// Memory that is a file: what a plan keeps on NVMe drives. The operating system writes pages to the drive when it likes and reads them when
// they are touched, so the bytes need no room in memory.
#pragma once

#include <cstddef>
#include <utility>

#include "core/base/units.h"

namespace foreshard {

// Zeroed, at a multiple of a page. The file has no name: it ends with the memory, or with the process. It lies in the folder that TMPDIR
// names, else in /tmp. Throws DeviceError with folder and reason when there is no room for it.
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
