// Text search in a document: finds instructions and layers by name, actions ("B12"), ranks and stages, causes of bubbles, links.
#pragma once

#include <string>
#include <vector>

#include "gui/document/document.h"
#include "gui/document/selection.h"
#include "gui/document/time_axis.h"

namespace foreshard {

struct FindHit {
  std::string text = {}, aside = {};  // text: what it is; aside: where and when
  Picked picked = {};
  TimeRange range = {};  // the time range to show
  bool operator==(const FindHit&) const = default;
};

// At most `most` hits: matches of whole words before matches inside words, then by time. "rank 17" finds the class of that rank.
std::vector<FindHit> find_hits(const Document& document, const std::string& query, std::size_t most = 60);

}  // namespace foreshard
