#include "core/base/count_text.h"

#include <cstdio>

namespace foreshard {

std::string count_text(std::int64_t count) {
  std::string text = std::to_string(count);
  const int first = count < 0 ? 1 : 0;
  for (auto at = static_cast<int>(text.size()) - 3; at > first; at -= 3) text.insert(static_cast<std::size_t>(at), 1, ',');
  return text;
}

std::string counted(std::int64_t count, const std::string& thing, const std::string& things) {
  return count_text(count) + " " + (count == 1 ? thing : things.empty() ? thing + "s" : things);
}

std::string in_size(Bytes bytes) {
  constexpr double kKib = 1024;
  const auto size = static_cast<double>(bytes.value);
  char digits[64];
  if (size < kKib * kKib) return std::snprintf(digits, sizeof digits, "%.1f KiB", size / kKib), digits;
  const bool small = size < kKib * kKib * kKib;
  std::snprintf(digits, sizeof digits, "%.2f %s", size / kKib / kKib / (small ? 1 : kKib), small ? "MiB" : "GiB");
  return digits;
}

}  // namespace foreshard
