#include "exec/base/checksum.h"

#include <array>
#include <cstdio>
#include <cstring>

#include "exec/base/philox.h"

namespace foreshard {

std::uint64_t checksum_of_elements(std::int64_t first, std::span<const std::byte> bytes, std::size_t width) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at + width <= bytes.size(); at += width) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + at, width);
    sum += mix_keys(static_cast<std::uint64_t>(first++), bits);
  }
  return sum;
}

std::uint64_t checksum_of_text(std::string_view text) { return name_key(text); }

std::string checksum_text(std::uint64_t checksum) {
  std::array<char, kChecksumDigits + 1> digits = {};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(checksum));
  return digits.data();
}

}  // namespace foreshard
