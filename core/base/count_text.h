// Text of counts and of byte sizes for people.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/units.h"

namespace foreshard {

std::string count_text(std::int64_t count);  // "1,734"
// "1 layer", "1,734 layers". `things` is the plural where it is not `thing` followed by an s.
std::string counted(std::int64_t count, const std::string& thing, const std::string& things = "");
std::string in_size(Bytes bytes);  // "0.5 KiB", "12.34 MiB", "1234.50 GiB"

}  // namespace foreshard
