// What a few typed words find in a document: instructions and layers by name, actions ("B12"), ranks and stages, causes of
// bubbles, links.
#pragma once

#include <string>
#include <vector>

#include "gui/document/document.h"
#include "gui/document/selection.h"
#include "gui/document/time_axis.h"

namespace foreshard {

struct FindHit {
  std::string text = {}, aside = {};  // what it is; where and when
  Picked picked = {};
  TimeRange range = {};  // to bring into view
  bool operator==(const FindHit&) const = default;
};

// At most `most`, the whole words before mere parts of words, then by time. "rank 17" finds the class of that rank.
std::vector<FindHit> find_hits(const Document& document, const std::string& query, std::size_t most = 60);

}  // namespace foreshard
