#include "exec/base/file_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "core/base/error.h"

namespace foreshard {

FileMemory::FileMemory(Bytes bytes) {
  if (bytes.value == 0) return;
  std::error_code unknown;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(unknown);
  const char* named = std::getenv("TMPDIR");
  const std::string what =
      "a file of " + std::to_string(bytes.value) + " bytes in " + (unknown && named ? named : folder.string());
  if (unknown) throw DeviceError(what, unknown.message());
  std::string name = (folder / "foreshard-nvme-XXXXXX").string();
  const int file = mkstemp(name.data());
  if (file < 0) throw DeviceError(what, std::strerror(errno));
  unlink(name.c_str());
  const int refused = posix_fallocate(file, 0, bytes.value);
  void* memory =
      refused ? MAP_FAILED : mmap(nullptr, static_cast<std::size_t>(bytes.value), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int why = refused ? refused : errno;
  close(file);
  if (memory == MAP_FAILED) throw DeviceError(what, std::strerror(why));
  data_ = static_cast<std::byte*>(memory);
  bytes_ = static_cast<std::size_t>(bytes.value);
}

FileMemory::~FileMemory() {
  if (data_) munmap(data_, bytes_);
}

}  // namespace foreshard
