// What pieces of memory hold of gradients, as a graph (check_plan_contributions.cpp). Internal to core/check.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace foreshard {

using NodeId = std::int32_t;
inline constexpr NodeId kNothing = -1;

struct Leaf {  // where it was written
  std::int32_t action = 0, instruction = 0, tensor = -1, run = 0;
};

class Contributions {
 public:
  NodeId leaf(const Leaf& from) {
    leaves_.push_back(from);
    return add({.leaf = static_cast<std::int32_t>(leaves_.size()) - 1});
  }
  // The node of all of `parts`; kNothing without any. `parts` is sorted on return.
  NodeId all_of(std::vector<NodeId>& parts) {
    std::sort(parts.begin(), parts.end());
    parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    if (!parts.empty() && parts.front() == kNothing) parts.erase(parts.begin());
    if (parts.size() < 2) return parts.empty() ? kNothing : parts.front();
    Node node{.first = static_cast<std::int32_t>(parts_.size()), .parts = static_cast<std::int32_t>(parts.size())};
    for (const NodeId part : parts) {
      parts_.push_back(part);
      ++at(part).holders;
    }
    return add(node);
  }
  void hold(NodeId id) {
    if (id != kNothing) ++at(id).holders;
  }
  // Appends the leaves that are lost by it.
  void drop(NodeId id, std::vector<Leaf>& lost) {
    if (id == kNothing) return;
    stack_.assign(1, id);
    while (!stack_.empty()) {
      const NodeId next = stack_.back();
      stack_.pop_back();
      Node& node = at(next);
      if (--node.holders > 0 || node.used) continue;
      if (node.leaf >= 0) lost.push_back(leaves_[static_cast<std::size_t>(node.leaf)]);
      for_each_part(node, [&](NodeId part) { stack_.push_back(part); });
    }
  }
  void use(NodeId id) {
    if (id == kNothing) return;
    stack_.assign(1, id);
    while (!stack_.empty()) {
      Node& node = at(stack_.back());
      stack_.pop_back();
      if (node.used) continue;
      node.used = true;
      for_each_part(node, [&](NodeId part) { stack_.push_back(part); });
    }
  }
  std::vector<Leaf> unused_of_run(int run) const {
    std::vector<Leaf> left;
    for (const Node& node : nodes_)
      if (node.leaf >= 0 && !node.used && node.holders > 0 && leaves_[static_cast<std::size_t>(node.leaf)].run == run)
        left.push_back(leaves_[static_cast<std::size_t>(node.leaf)]);
    return left;
  }

 private:
  struct Node {
    std::int32_t leaf = -1, first = 0, parts = 0;  // a leaf, or `parts` entries of parts_ from `first` on
    std::int32_t holders = 0;
    bool used = false;  // a step has read it
  };
  Node& at(NodeId id) { return nodes_[static_cast<std::size_t>(id)]; }
  NodeId add(const Node& node) {
    nodes_.push_back(node);
    return static_cast<NodeId>(nodes_.size()) - 1;
  }
  template <class F>
  void for_each_part(const Node& node, F&& f) const {
    for (std::int32_t p = node.first; p < node.first + node.parts; ++p) f(parts_[static_cast<std::size_t>(p)]);
  }

  std::vector<Node> nodes_;
  std::vector<NodeId> parts_, stack_;
  std::vector<Leaf> leaves_;
};

}  // namespace foreshard
