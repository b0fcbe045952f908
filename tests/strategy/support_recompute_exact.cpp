// Branch and bound over the sets of values that are kept from one stage to the next.
#include "tests/strategy/support_recompute_exact.h"

#include <algorithm>
#include <bit>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/biconnected_components.hpp>
#include <limits>
#include <unordered_map>

#include "core/base/error.h"

namespace foreshard {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
using Set = std::uint32_t;  // of nodes, by bits

class BranchAndBound {
 public:
  BranchAndBound(const std::vector<RecomputeNode>& graph, int budget)
      : graph_(graph), budget_(budget), nodes_(static_cast<int>(graph.size())) {
    FS_ASSERT(nodes_ <= 30);
    for (std::size_t i = 0; i < graph.size(); ++i) {
      const RecomputeNode& node = graph[i];
      if (node.once) once_only_ |= Set{1} << i;
      Set inputs = 0;
      for (const int input : node.inputs) inputs |= Set{1} << input;
      inputs_.push_back(inputs);
    }
    later_.assign(graph.size() + 1, 0), once_.assign(graph.size() + 1, 0);
    for (std::size_t t = graph.size(); t-- > 0;)
      later_[t] = later_[t + 1] | inputs_[t], once_[t] = once_[t + 1] + graph[t].seconds;
    fastest_.resize(graph.size());
    way_.assign(graph.size(), 0);
  }

  ExactSchedule solve() {
    const GraphSchedule greedy = recompute_greedy(graph_, budget_);
    if (!greedy.keep.empty() || graph_.empty()) best_ = greedy.seconds, found_ = greedy;
    if (nodes_ > 0) stage(0, 0, 0);
    return {found_, visited_};
  }

 private:
  double seconds(Set nodes) const {
    double sum = 0;
    for (; nodes != 0; nodes &= nodes - 1) sum += graph_[static_cast<std::size_t>(std::countr_zero(nodes))].seconds;
    return sum;
  }
  std::int64_t bytes(Set nodes) const {
    std::int64_t sum = 0;
    for (; nodes != 0; nodes &= nodes - 1) sum += graph_[static_cast<std::size_t>(std::countr_zero(nodes))].bytes;
    return sum;
  }

  // `wanted` and what it is made of, down to what is there.
  Set made_of(Set wanted, Set there) const {
    Set all = wanted & ~there;
    for (int i = nodes_ - 1; i >= 0; --i)
      if (all >> i & 1U) all |= inputs_[static_cast<std::size_t>(i)] & ~there;
    return all;
  }

  // Seconds of everything after stage t with `kept` there, at least.
  double bound(int t, Set kept) const {
    const auto next = static_cast<std::size_t>(t) + 1;
    const Set past = (Set{2} << t) - 1;
    return once_[next] + seconds(made_of(later_[next] & past, kept));
  }

  // Whether stage t, which starts with `kept`, runs `run` and leaves `next`, stays inside the budget.
  bool fits(int t, Set kept, Set next, Set run) const {
    Set alive = 0;
    const auto read_after = [&](int node) {  // by what runs from there on
      Set read = 0;
      for (Set rest = run & ~((Set{1} << node) - 1); rest != 0; rest &= rest - 1)
        read |= inputs_[static_cast<std::size_t>(std::countr_zero(rest))];
      return read;
    };
    alive = kept & (next | read_after(0));
    if (bytes(alive) > budget_) return false;
    for (int k = 0; k <= t; ++k) {
      if (!(run >> k & 1U)) continue;
      alive |= Set{1} << k;
      if (bytes(alive) > budget_) return false;
      alive &= next | (k == t ? Set{0} : read_after(k + 1));
    }
    return true;
  }

  void stage(int t, Set kept, double spent) {
    const auto [known, fresh] = fastest_[static_cast<std::size_t>(t)].try_emplace(kept, spent);
    if (!fresh && known->second <= spent) return;
    known->second = spent;
    way_[static_cast<std::size_t>(t)] = kept;
    const Set past = (Set{2} << t) - 1;
    if (t + 1 == nodes_) return end(kept, spent);
    struct Branch {
      double least = 0, spent = 0;
      Set next = 0;
    };
    std::vector<Branch> branches;
    const Set base = made_of(Set{1} << t, kept);
    const auto grow = [&](const auto& self, int node, Set next) -> void {  // decides about node, node - 1, ..., 0
      if (bytes(next) > budget_) return;
      if (node < 0) {
        ++visited_;
        const Set run = base | made_of(next, kept);
        if (run & once_only_ & ~(Set{1} << t)) return;
        const double after = spent + seconds(run), least = after + bound(t, next);
        if (least < best_ && fits(t, kept, next, run)) branches.push_back({least, after, next});
        return;
      }
      self(self, node - 1, next);
      self(self, node - 1, next | Set{1} << node);
    };
    grow(grow, std::bit_width(past) - 1, 0);
    std::sort(branches.begin(), branches.end(), [](const Branch& a, const Branch& b) { return a.least < b.least; });
    for (const Branch& branch : branches)
      if (branch.least < best_) stage(t + 1, branch.next, branch.spent);
  }

  void end(Set kept, double spent) {
    const int t = nodes_ - 1;
    const Set run = made_of(Set{1} << t, kept);
    if (run & once_only_ & ~(Set{1} << t)) return;
    if (spent + seconds(run) >= best_ || !fits(t, kept, 0, run)) return;
    best_ = spent + seconds(run);
    std::vector<std::vector<bool>> keep;
    for (const Set set : way_) {
      keep.emplace_back(graph_.size(), false);
      for (std::size_t i = 0; i < graph_.size(); ++i) keep.back()[i] = (set >> i & 1U) != 0;
    }
    found_ = schedule_of(graph_, keep);
  }

  const std::vector<RecomputeNode>& graph_;
  std::int64_t budget_;
  int nodes_;
  std::vector<Set> inputs_ = {}, later_ = {};                  // [node]; [t]: read by nodes from t on
  std::vector<double> once_ = {};                              // [t]: seconds of the nodes from t on
  std::vector<std::unordered_map<Set, double>> fastest_ = {};  // [stage]{kept}: seconds before it
  std::vector<Set> way_ = {};                                  // [stage]: kept, on the branch under way
  Set once_only_ = 0;
  double best_ = kNever;
  GraphSchedule found_ = {};
  std::int64_t visited_ = 0;
};

}  // namespace

ExactSchedule recompute_exact(const std::vector<RecomputeNode>& graph, int budget) {
  return BranchAndBound(graph, budget).solve();
}

std::vector<int> chain_points(const std::vector<RecomputeNode>& graph) {
  boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS> edges(graph.size());
  for (std::size_t i = 0; i < graph.size(); ++i)
    for (const int input : graph[i].inputs) boost::add_edge(static_cast<std::size_t>(input), i, edges);
  std::vector<std::size_t> cuts;
  boost::articulation_points(edges, std::back_inserter(cuts));
  std::vector<int> points;
  for (const std::size_t cut : cuts) {  // those that no edge passes by
    bool alone = true;
    for (std::size_t i = cut + 1; i < graph.size(); ++i)
      for (const int input : graph[i].inputs) alone &= static_cast<std::size_t>(input) >= cut;
    if (alone) points.push_back(static_cast<int>(cut));
  }
  std::sort(points.begin(), points.end());
  return points;
}

}  // namespace foreshard
