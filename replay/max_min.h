// Max-min fair rates: the rates of all flows grow equally, and a flow's rate is fixed when a link that it crosses is full (progressive
// filling; Bertsekas and Gallager, Data Networks, 1992, section 6.5.2). A flow of rate x takes weight * x of each link that it crosses.
#pragma once

#include <span>
#include <vector>

namespace foreshard::player {

struct LinkShare {
  int link = 0;
  double weight = 1;  // above 0
};

// One instance serves many calls, so that its arrays are allocated once.
class MaxMin {
 public:
  // Returns the rate of each flow in bytes per second; the span is valid until the next call. `capacity[link]`: bytes per second, above
  // 0. `flows[i]`: the links of flow i, at least one, none twice.
  //
  // Takes O(E log L) for E crossings of flows and L links that are crossed: the rate at which a link is full only grows while others
  // fill up, so a heap of lower bounds finds the next full link.
  std::span<const double> share(std::span<const double> capacity, std::span<const std::span<const LinkShare>> flows);

 private:
  struct Link {
    double left = 0, weight = 0;  // capacity that flows of fixed rate leave; sum of the weights of the flows that still grow
    int first = -1;               // its first crossing; `next_` links the others
    int growing = 0;              // number of flows that still grow
  };
  struct Candidate {
    double rate = 0;
    int link = 0;
    bool operator<(const Candidate& other) const {  // of a max-heap: the smallest rate first, then the lowest link
      return rate != other.rate ? rate > other.rate : link > other.link;
    }
  };
  // Fixes the rate of the flows that still grow on link `full`.
  void fill(std::span<const std::span<const LinkShare>> flows, int full, double rate);

  std::vector<Link> links_ = {};               // links that flows cross, in order of appearance
  std::vector<int> number_ = {};               // [link]: its index in links_; -1: no flow crosses it
  std::vector<int> flow_of_ = {}, next_ = {};  // [crossing]: its flow; the next crossing of the same link, or -1
  std::vector<Candidate> heap_ = {};
  std::vector<double> rates_ = {};  // [flow]; below 0: still growing
  std::vector<int> named_ = {};     // [index in links_]: the caller's number of the link
};

}  // namespace foreshard::player
