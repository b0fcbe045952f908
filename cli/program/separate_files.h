// What a verb writes must not fall on what it reads, nor on something else that it writes.
#pragma once

#include <string>
#include <vector>

#include "cli/program/verb.h"

namespace foreshard {

// Of the options given: every one names a file, and those written differ from those read and from each other. Throws Error.
void expect_separate_files(const Arguments& arguments, const std::vector<std::string>& read,
                           const std::vector<std::string>& written);

// Of the options given, the files can be made: told before the work, not after it. Throws Error.
void expect_places(const Arguments& arguments, const std::vector<std::string>& written);

// Of the options given, the folders of the files exist; the files may be devices. Throws Error.
void expect_folders(const Arguments& arguments, const std::vector<std::string>& written);

}  // namespace foreshard
