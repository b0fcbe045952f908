#include "gui/widgets/fuzzy.h"

#include <algorithm>
#include <vector>

namespace foreshard {

// best[j]: the best score of the query so far with its last letter at text[j]; quadratic, for lines of a menu.
int fuzzy_score(const QString& query, const QString& text) {
  const QString q = query.toCaseFolded().remove(' '), t = text.toCaseFolded();
  if (q.isEmpty()) return 1;
  if (q.size() > t.size()) return 0;
  std::vector<int> before(static_cast<std::size_t>(t.size()), 0), best;
  for (qsizetype i = 0; i < q.size(); ++i) {
    best.assign(before.size(), 0);
    int reach = 0;  // best of before[0 .. j-1]
    for (qsizetype j = 0; j < t.size(); ++j) {
      const auto at = static_cast<std::size_t>(j);
      const int previous = i == 0 ? 1 : reach;
      if (q[i] == t[j] && previous > 0) {
        const bool begins = j == 0 || !t[j - 1].isLetterOrNumber();
        const bool follows = i > 0 && j > 0 && before[at - 1] > 0;
        const int bonus = 1 + (begins ? 8 : 0);
        best[at] = std::max(previous + bonus, follows ? before[at - 1] + bonus + 6 : 0);
      }
      reach = std::max(reach, before[at]);
    }
    before.swap(best);
  }
  const int score = *std::max_element(before.begin(), before.end());
  return score == 0 ? 0 : score * 100 + static_cast<int>(std::max<qsizetype>(0, 99 - t.size()));  // of equals the shorter
}

}  // namespace foreshard
