// Max-min fair rates: every flow grows at the same pace until a link that it crosses is full (progressive filling; Bertsekas and
// Gallager, Data Networks, 1992, section 6.5.2). A flow of rate x takes weight * x of each link that it crosses.
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
  // `capacity[link]` above 0, in bytes per second. `flows[i]` names the links of flow i, at least one, none twice. Only links that
  // the flows name are looked at. Gives the rate of each flow, valid until the next call.
  //
  // O(E log L) for E crossings and L links: the rate at which a link is full only grows while others fill up, so a heap of lower
  // bounds finds the next full link.
  std::span<const double> share(std::span<const double> capacity, std::span<const std::span<const LinkShare>> flows);

 private:
  struct Link {
    double left = 0, weight = 0;  // capacity that fixed flows leave; sum of weights of the flows that still grow
    int first = -1;               // of its crossings, a list in `next_`
    int growing = 0;
  };
  struct Candidate {
    double rate = 0;
    int link = 0;
    bool operator<(const Candidate& other) const {  // of a max-heap: the smallest rate first, then the lowest link
      return rate != other.rate ? rate > other.rate : link > other.link;
    }
  };
  void fill(std::span<const std::span<const LinkShare>> flows, int full, double rate);

  std::vector<Link> links_ = {};               // those named, in order of appearance
  std::vector<int> number_ = {};               // [link]: its place in links_; -1
  std::vector<int> flow_of_ = {}, next_ = {};  // [crossing]
  std::vector<Candidate> heap_ = {};
  std::vector<double> rates_ = {};  // below 0: still growing
  std::vector<int> named_ = {};
};

}  // namespace foreshard::player
