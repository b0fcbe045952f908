// Scores how well a few typed letters match a line of text. The letters must occur in order; the score is higher where they begin words
// or are adjacent.
#pragma once

#include <QString>

namespace foreshard {

// 0: no match (a letter is missing). The empty query matches every text with score 1. Case and blanks of the query are ignored.
int fuzzy_score(const QString& query, const QString& text);

}  // namespace foreshard
