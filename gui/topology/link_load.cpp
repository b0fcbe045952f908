#include "gui/topology/link_load.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/plan/ranks.h"
#include "report/words/span_words.h"

namespace foreshard {

namespace {

struct Crossing {
  std::int32_t link_class = 0;
  double weight = 0;
  double on_each = 0;  // of the transfers that this instruction starts, on one link of the class
};

// Which classes of links an instruction of a class of ranks loads, and the relative load of each.
class Crossings {
 public:
  Crossings(const Document& document, const Network& network)
      : document_(document),
        plan_(document.plan()),
        network_(network),
        ranks_(plan_),
        class_of_(static_cast<std::size_t>(network.links()), -1),
        sums_(document.trace().links.size(), 0) {
    for (std::size_t c = 0; c < document.trace().links.size(); ++c)
      for (const LinkId link : document.trace().links[c].links)
        if (link.valid() && link.index() < class_of_.size()) class_of_[link.index()] = static_cast<std::int32_t>(c);
  }

  const std::vector<Crossing>& of(const Span& span) {
    const Action& action = action_of(plan_, document_.trace(), span);
    const auto [at, fresh] =
        known_.emplace(std::tuple(span.who.value, action.segment.value, span.instruction), std::vector<Crossing>());
    if (fresh) at->second = find(span);
    return at->second;
  }

 private:
  std::vector<Crossing> find(const Span& span) {
    const RankClass& ranks = document_.trace().classes[span.who.index()];
    if (ranks.members.empty()) return {};
    const RankId rank = ranks.members.front();
    const Instruction& instruction = instruction_of(plan_, document_.trace(), span);
    touched_.clear();
    crossed_.clear();
    double scale = static_cast<double>(ranks.members.size());
    if (const auto* exchange = std::get_if<Exchange>(&instruction.what)) {
      const RankId to = exchange->to ? ranks_.peer(rank, *exchange->to) : RankId{};
      if (to.valid())
        add(network_.route(ranks_.device(rank), ranks_.device(to)).links, static_cast<double>(exchange->bytes.value));
    } else if (const auto* collective = std::get_if<Collective>(&instruction.what)) {
      std::vector<DeviceId> devices;
      for (const RankId member : ranks_.members(collective->group, rank)) devices.push_back(ranks_.device(member));
      scale /= static_cast<double>(std::max<std::size_t>(devices.size(), 1));
      for (const CollectiveFlow& flow : collective_phases(network_, *collective, devices)) add(flow.links, flow.bytes);
    } else if (const auto* copy = std::get_if<Copy>(&instruction.what);
               copy != nullptr && !instruction.writes.empty() && !instruction.reads.empty()) {
      const Role& role = plan_.roles[ranks.role.index()];
      const Space from = role.buffers[instruction.reads.front().buffer.index()].space;
      const Space to = role.buffers[instruction.writes.front().buffer.index()].space;
      const Space far = to == Space::Device ? from : to;
      if (far != Space::Device)
        add(network_
                .host_route(ranks_.device(rank), far == Space::Nvme ? Endpoint::Nvme : Endpoint::HostMemory,
                            to == Space::Device)
                .links,
            static_cast<double>(copy->bytes.value));
    }
    std::vector<Crossing> crossings;
    for (const std::int32_t c : touched_) {
      const auto links = static_cast<double>(document_.trace().links[static_cast<std::size_t>(c)].links.size());
      crossings.push_back({c, sums_[static_cast<std::size_t>(c)] * scale, crossed_[c].size() * scale / std::max(links, 1.0)});
      sums_[static_cast<std::size_t>(c)] = 0;
    }
    return crossings;
  }

  template <class Links>
  void add(const Links& links, double bytes) {
    for (const LinkId link : links) {
      const std::int32_t c = link.valid() && link.index() < class_of_.size() ? class_of_[link.index()] : -1;
      if (c < 0) continue;
      if (sums_[static_cast<std::size_t>(c)] == 0) touched_.push_back(c);
      sums_[static_cast<std::size_t>(c)] += bytes;
      crossed_[c].insert(link.value);
    }
  }

  const Document& document_;
  const Plan& plan_;
  const Network& network_;
  Ranks ranks_;
  std::vector<std::int32_t> class_of_;  // [link]
  std::vector<double> sums_;            // [class of links]
  std::vector<std::int32_t> touched_;
  std::map<std::int32_t, std::set<std::int32_t>> crossed_;  // class of links -> its links that are crossed
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::vector<Crossing>> known_;
};

}  // namespace

LinkLoad::LinkLoad(const Document& document) : makespan_(document.trace().makespan) {
  const std::vector<LinkClass>& links = document.trace().links;
  for (const LinkClass& link : links) total_.push_back(link.bytes), bandwidth_.push_back(link.bandwidth.value);
  bins_ = links.size() <= 512 ? 4096 : 512;
  for (std::vector<float>* sums : {&weights_, &on_, &used_}) sums->assign(links.size() * (bins_ + 1), 0);
  if (document.cluster && makespan_ > Nanoseconds{}) spread(document);
  for (std::size_t c = 0; c < links.size(); ++c) {  // to sums that end at 1; a class that no span is known to cross: evenly
    for (std::size_t b = 1, at = c * (bins_ + 1) + 1; b <= bins_; ++b, ++at) {
      used_[at] = used_[at - 1] + std::min(used_[at], 1.0F);  // several in a bin fill it at most once
      on_[at] += on_[at - 1];
    }
    float* row = &weights_[c * (bins_ + 1)];
    double all = 0;
    for (std::size_t b = 1; b <= bins_; ++b) all += static_cast<double>(row[b]);
    double before = 0;
    for (std::size_t b = 1; b <= bins_; ++b) {
      before += all > 0 ? static_cast<double>(row[b]) / all : 1.0 / static_cast<double>(bins_);
      row[b] = static_cast<float>(before);
    }
  }
}

void LinkLoad::spread(const Document& document) {
  const Network network(*document.cluster);
  Crossings crossings(document, network);
  const double per_bin = static_cast<double>(makespan_.value) / static_cast<double>(bins_);
  for (const Span& span : document.trace().spans) {
    if (span.begin == span.end || span.count != 1) continue;  // merged spans communicate with no rank outside
    const std::vector<Crossing>& crossed = crossings.of(span);
    if (crossed.empty()) continue;
    const double from = static_cast<double>(span.begin.value) / per_bin, to = static_cast<double>(span.end.value) / per_bin;
    for (auto bin = static_cast<std::size_t>(from); bin < bins_ && static_cast<double>(bin) < to; ++bin) {
      const double part = (std::min(to, static_cast<double>(bin + 1)) - std::max(from, static_cast<double>(bin))) / (to - from);
      const double time = std::min(to, static_cast<double>(bin + 1)) - std::max(from, static_cast<double>(bin));
      for (const Crossing& crossing : crossed) {
        const std::size_t at = static_cast<std::size_t>(crossing.link_class) * (bins_ + 1) + bin + 1;
        weights_[at] += static_cast<float>(crossing.weight * part);
        on_[at] += static_cast<float>(crossing.on_each * time);
        used_[at] += static_cast<float>(std::min(crossing.on_each, 1.0) * time);
      }
    }
  }
}

// The increase of a row of cumulative sums in the range of time.
double LinkLoad::between(const std::vector<float>& sums, std::size_t link_class, TimeRange range) const {
  if (link_class >= total_.size() || makespan_ <= Nanoseconds{}) return 0;
  const float* row = &sums[link_class * (bins_ + 1)];
  const auto until = [&](Nanoseconds when) {
    const double at = std::clamp(static_cast<double>(when.value) / static_cast<double>(makespan_.value), 0.0, 1.0) *
                      static_cast<double>(bins_);
    const auto bin = std::min(static_cast<std::size_t>(at), bins_ - 1);
    const double inside = at - static_cast<double>(bin);
    return static_cast<double>(row[bin]) * (1 - inside) + static_cast<double>(row[bin + 1]) * inside;
  };
  return std::max(until(range.end) - until(range.begin), 0.0);
}

double LinkLoad::bytes(std::size_t link_class, TimeRange range) const {
  return link_class < total_.size() ? total_[link_class] * between(weights_, link_class, range) : 0;
}

double LinkLoad::sharers(std::size_t link_class, TimeRange range) const {
  const double used = between(used_, link_class, range);
  return used > 1e-9 ? between(on_, link_class, range) / used : 0;
}

double LinkLoad::utilization(std::size_t link_class, TimeRange range) const {
  const double possible = link_class < bandwidth_.size() ? bandwidth_[link_class] * to_seconds(range.length()).value : 0;
  return possible > 0 ? bytes(link_class, range) / possible : 0;
}

}  // namespace foreshard
