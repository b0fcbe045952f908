// Locks on files that are written for a long time, or read and written again: one process at a time has the lock of a file. A lock ends with
// the process that holds it, whatever ends that process.
#pragma once

#include <string>

#include "core/base/open_file.h"

namespace foreshard {

// Locks the whole of an open file, for writing, without waiting: an "open file description" lock of Linux, which ends when the last descriptor
// of it is closed. The file must be open for writing. No: the file system has no locks.
enum class LockAnswer : unsigned char { Locked, Held, No };
LockAnswer lock_file(int descriptor);

class FileLock {
 public:
  // Wait: until the other process releases the lock. Refuse: after a second, Error, which names the file and the process.
  enum class IfHeld : unsigned char { Wait, Refuse };

  // Locks the file `path`, whether it exists or not, by a small file beside it (.NAME.foreshard-lock; where `path` is a symbolic link, beside
  // the file that it leads to), which is gone when the lock is released. A file left behind by a killed process is no lock. Throws Error if
  // that file cannot be created. On a file system without locks, and for a pipe or a device, nothing is locked.
  FileLock(const std::string& path, IfHeld if_held);
  FileLock(FileLock&&) noexcept = default;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  std::string name_;
  OpenFile file_;
};

}  // namespace foreshard
