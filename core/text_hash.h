// A short name for the contents of a file: the same bytes, the same name. No protection against who wants two files to look alike.
#pragma once

#include <string>

namespace foreshard {

std::string text_hash(const std::string& text);  // FNV-1a of 64 bits, 16 hexadecimal digits

}  // namespace foreshard
