// Numbers of things as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace foreshard {

std::string count_text(std::int64_t count);  // "1,734"
// "1 layer", "1,734 layers"; `things`: a plural that is not the word with an s.
std::string counted(std::int64_t count, const std::string& thing, const std::string& things = "");

}  // namespace foreshard
