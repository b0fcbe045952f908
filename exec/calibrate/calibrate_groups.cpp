#include "exec/calibrate/calibrate_groups.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "core/base/error.h"

namespace foreshard {

namespace {

using Members = std::vector<RankId>;

std::vector<int> doubled_up_to(int all) {
  std::vector<int> sizes;
  for (int size = 2; size < all; size *= 2) sizes.push_back(size);
  if (all >= 2) sizes.push_back(all);
  return sizes;
}

class Groups {
 public:
  Groups(const std::vector<RankLocation>& locations, bool threads, std::optional<MeasuredLink> inside)
      : locations_(locations), threads_(threads), inside_(inside) {
    std::map<std::string, std::size_t> place;  // node -> index in nodes_, which is in the order of the nodes' first ranks
    for (std::size_t r = 0; r < locations.size(); ++r) {
      const auto [found, fresh] = place.try_emplace(locations[r].node, nodes_.size());
      if (fresh) nodes_.emplace_back();
      nodes_[found->second].push_back({static_cast<std::int32_t>(r)});
    }
  }

  std::vector<MeasuredGroup> all() {
    if (nodes_.empty()) return {};
    const Members& first = nodes_.front();
    for (const int size : doubled_up_to(static_cast<int>(first.size()))) add_inside({first.begin(), first.begin() + size});
    for (const Members& node : nodes_)
      for (std::size_t a = 0; a < node.size(); ++a)
        for (std::size_t b = a + 1; b < node.size(); ++b)
          if (!seen_.contains(class_of({node[a], node[b]}))) add_inside({node[a], node[b]});
    std::size_t least = first.size();
    for (const Members& node : nodes_) least = std::min(least, node.size());
    for (const int count : doubled_up_to(static_cast<int>(nodes_.size()))) {
      add_between(count, 1);
      if (least > 1) add_between(count, least);
    }
    return groups_;
  }

 private:
  void add_inside(Members members) {
    const MeasuredLink link = class_of(members);
    seen_.insert(link);
    groups_.push_back({.link = link, .members = std::move(members)});
  }
  void add_between(int count, std::size_t each) {
    MeasuredGroup group{.link = MeasuredLink::Network, .nodes = count};
    for (int n = 0; n < count; ++n) {
      const Members& node = nodes_[static_cast<std::size_t>(n)];
      group.members.insert(group.members.end(), node.begin(), node.begin() + static_cast<std::ptrdiff_t>(each));
    }
    groups_.push_back(std::move(group));
  }

  const RankLocation& location(RankId rank) const { return locations_[rank.index()]; }

  MeasuredLink class_of(const Members& members) const {
    if (inside_) return *inside_;
    if (location(members.front()).gpu.empty()) return threads_ ? MeasuredLink::Process : MeasuredLink::Node;
    for (const RankId a : members)
      for (const RankId b : members)
        if (std::count(location(a).sees.begin(), location(a).sees.end(), location(b).gpu) == 0)
          throw Error("calibrate", "rank " + std::to_string(a.value),
                      "a process that does not see GPU " + location(b).gpu + " of rank " + std::to_string(b.value),
                      "all GPUs of the node in CUDA_VISIBLE_DEVICES, or --link-class nvlink or pcie");
    return joined_by_nvlink(members) ? MeasuredLink::NvLink : MeasuredLink::Pcie;
  }

  // A ring sends between neighbours only. So it is enough that every member reaches every other over NVLinks, possibly through other
  // members.
  bool joined_by_nvlink(const Members& members) const {
    Members reached = {members.front()};
    for (std::size_t i = 0; i < reached.size(); ++i)
      for (const RankId next : members) {
        const std::vector<std::string>& links = location(reached[i]).nvlinks;
        const bool linked = std::find(links.begin(), links.end(), location(next).gpu) != links.end();
        if (linked && std::find(reached.begin(), reached.end(), next) == reached.end()) reached.push_back(next);
      }
    return reached.size() == members.size();
  }

  const std::vector<RankLocation>& locations_;
  bool threads_;
  std::optional<MeasuredLink> inside_;
  std::vector<Members> nodes_ = {};
  std::vector<MeasuredGroup> groups_ = {};
  std::set<MeasuredLink> seen_ = {};
};

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
  return all;
}
std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> all;
  for (std::string word; in >> word;) all.push_back(word);
  return all;
}

}  // namespace

std::string to_line(const RankLocation& location) {
  return location.node + "\t" + location.gpu + "\t" + joined(location.sees) + "\t" + joined(location.nvlinks);
}

RankLocation location_of_line(const std::string& line) {
  std::array<std::string, 4> parts;
  std::istringstream in(line);
  std::size_t found = 0;
  while (found < parts.size() && std::getline(in, parts[found], '\t')) ++found;
  if (found == 0 || std::count(line.begin(), line.end(), '\t') != 3)
    throw DeviceError("calibrate", "a process told no place of its rank");
  return {.node = parts[0], .gpu = parts[1], .sees = words_of(parts[2]), .nvlinks = words_of(parts[3])};
}

std::vector<MeasuredGroup> groups_to_measure(const std::vector<RankLocation>& locations, bool threads,
                                             std::optional<MeasuredLink> inside) {
  return Groups(locations, threads, inside).all();
}

std::string this_node(const char* variable) {
  if (variable && *variable) return variable;
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  if (!boot.empty()) return boot;
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "this node";
}

}  // namespace foreshard
