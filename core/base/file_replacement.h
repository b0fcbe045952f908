// Replaces files as a whole. All result files of the programs (checkpoints, results, plans, profiles, strategies, traces, workspaces, ...) are
// written this way: under a temporary name of their own, then renamed. Whoever reads the file finds the complete old one or a complete new one,
// whatever crashes, and however many processes write a file of this name at the same time.
//
// Where the name is a symbolic link, the file that the link leads to is replaced and the link stays. Temporary files lie beside that file.
#pragma once

#include <string>

#include "core/base/open_file.h"

namespace foreshard {

// The file that a symbolic link leads to, whether it exists or not; any other path as it is. Throws Error for a circle of links, and for a link
// that somebody else may have put there: in a folder where everybody may create files (sticky, such as /tmp), links are followed only if they
// belong to this user or to the owner of the folder, as the kernel does when it opens a file (fs.protected_symlinks).
std::string link_target(const std::string& path);

// The folder of a file: "." where the path names none.
std::string folder_of_file(const std::string& path);

class FileReplacement {
 public:
  // Creates the temporary file, exclusively and with a random name: NAME.0f1e2d3c4b5a.part. If the file exists, the temporary one gets its
  // permissions. Removes temporary files of the same NAME that a killed process has left behind. Throws Error if the file cannot be created.
  explicit FileReplacement(const std::string& path);
  FileReplacement(const FileReplacement&) = delete;
  FileReplacement& operator=(const FileReplacement&) = delete;
  ~FileReplacement();  // removes the temporary file unless it has replaced the other

  int descriptor() const { return file_.descriptor(); }        // of the temporary file, for writing
  const std::string& temporary() const { return temporary_; }  // its path
  // Syncs the temporary file to the disk, renames it and syncs the folder. False: errno says why, and an earlier file of this name is untouched.
  [[nodiscard]] bool finish();

 private:
  std::string target_, temporary_;  // "": nothing to remove
  OpenFile file_;
};

}  // namespace foreshard
