#include "core/count_text.h"

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

}  // namespace foreshard
