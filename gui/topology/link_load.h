// Link load: how much each class of links carries in any stretch of time. The trace knows the bytes of the whole run; they are
// spread over the spans that cross the links, by the routes and flows of core/network, so that the whole run adds up exactly.
#pragma once

#include <vector>

#include "core/network/network.h"
#include "gui/document/document.h"
#include "gui/document/time_axis.h"

namespace foreshard {

class LinkLoad {
 public:
  // Takes some time for a large unfolded result: not in the thread of the window. Without a cluster all bytes are spread evenly.
  explicit LinkLoad(const Document& document);

  double bytes(std::size_t link_class, TimeRange range) const;        // of one link of the class
  double utilization(std::size_t link_class, TimeRange range) const;  // bytes / (bandwidth * length); may pass 1 by rounding
  // Transfers and collectives that are on one link of the class at once while it is used: 1 alone, 2 shared by two; 0: not used.
  // A moment is a bin of the whole time (1/4096 of it).
  double sharers(std::size_t link_class, TimeRange range) const;

 private:
  void spread(const Document& document);
  double between(const std::vector<float>& sums, std::size_t link_class, TimeRange range) const;
  std::vector<float> weights_ = {};    // [class][bin + 1]: sum of all bins before
  std::vector<float> on_, used_ = {};  // the same: transfers on a link; the share of the time with at least one
  std::size_t bins_ = 0;
  Nanoseconds makespan_ = {};
  std::vector<double> total_ = {}, bandwidth_ = {};  // [class]: bytes of the run, of one link
};

}  // namespace foreshard
