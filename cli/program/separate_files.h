// Checks the files that a verb is to write: none may be a file that it reads, or one that it writes for another option.
#pragma once

#include <string>
#include <vector>

#include "cli/program/verb.h"

namespace foreshard {

// `read`, `written`: options whose values are files. For those given, throws Error unless each names a file, and each written file
// differs from all others.
void expect_separate_files(const Arguments& arguments, const std::vector<std::string>& read,
                           const std::vector<std::string>& written);

// Throws Error when a file of a given option cannot be created, so that the user learns it before the work and not after.
void expect_places(const Arguments& arguments, const std::vector<std::string>& written);

// Weaker: throws Error when the folder of such a file does not exist. The file may be a device such as /dev/null.
void expect_folders(const Arguments& arguments, const std::vector<std::string>& written);

}  // namespace foreshard
