// A hash that identifies the contents of a file. It is not cryptographic: two files with the same hash can be made on purpose.
#pragma once

#include <string>

namespace foreshard {

std::string text_hash(const std::string& text);  // FNV-1a of 64 bits, 16 hexadecimal digits

}  // namespace foreshard
