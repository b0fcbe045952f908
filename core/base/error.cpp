#include "core/base/error.h"

#include <algorithm>
#include <numeric>

#include "core/base/printable.h"

namespace foreshard {

// A value or a key may be as long as its file, and have line breaks.
static constexpr std::size_t kMostShown = 500;

static std::string sentence(const std::string& where, const std::string& field, const std::string& found,
                            const std::string& expected) {
  std::string text = printable(where, std::string::npos);
  if (!field.empty()) text += (text.empty() ? "" : ": ") + printable(field, kMostShown);
  text += ": found " + printable(found, kMostShown);
  if (!expected.empty()) text += ", expected " + printable(expected, std::string::npos);
  return text;
}

Error::Error(std::string where, std::string field, std::string found, std::string expected)
    : std::runtime_error(sentence(where, field, found, expected)) {}

static std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replace, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string nearest_name(const std::string& name, const std::vector<std::string>& known) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 2) + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) best_distance = distance, best = candidate;
  }
  return best;
}

void assertion_failed(const char* condition, const char* file, int line) {
  throw Bug(std::string(condition) + " is false (" + file + ":" + std::to_string(line) + ")");
}

}  // namespace foreshard
