// Link load: how many bytes each class of links carries in any range of time. The trace has only the bytes of the whole run. They are
// distributed over the spans that use the links, by the routes and flows of core/network, so that their sum over the run is exact.
#pragma once

#include <vector>

#include "core/network/network.h"
#include "gui/document/document.h"
#include "gui/document/time_axis.h"

namespace foreshard {

class LinkLoad {
 public:
  // Slow for a large unfolded result: call it in a worker thread. Without a cluster all bytes are spread evenly over the run.
  explicit LinkLoad(const Document& document);

  double bytes(std::size_t link_class, TimeRange range) const;        // of one link of the class
  double utilization(std::size_t link_class, TimeRange range) const;  // bytes / (bandwidth * length); rounding can exceed 1
  // The mean number of transfers and collectives that share one link of the class while it is used: 1: no sharing; 0: not used. The
  // resolution is 1/4096 of the run, or 1/512 of it with more than 512 classes of links.
  double sharers(std::size_t link_class, TimeRange range) const;

 private:
  void spread(const Document& document);
  double between(const std::vector<float>& sums, std::size_t link_class, TimeRange range) const;
  std::vector<float> weights_ = {};    // [class][bin + 1]: share of the run's bytes, summed over all bins before
  std::vector<float> on_, used_ = {};  // likewise: transfers on a link; share of time with at least one
  std::size_t bins_ = 0;
  Nanoseconds makespan_ = {};
  std::vector<double> total_ = {}, bandwidth_ = {};  // [class], of one link: bytes of the run, byte/s
};

}  // namespace foreshard
