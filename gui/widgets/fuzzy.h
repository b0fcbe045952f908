// How well a few typed letters fit a line of text: the letters in order, better at the beginnings of words and together.
#pragma once

#include <QString>

namespace foreshard {

// 0: does not fit (a letter is missing); the empty query fits everything with 1. Case does not count.
int fuzzy_score(const QString& query, const QString& text);

}  // namespace foreshard
