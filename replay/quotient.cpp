#include "replay/quotient.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "core/plan/root_places.h"
#include "replay/used_links.h"

namespace foreshard::player {
namespace {

using Colours = std::vector<std::uint64_t>;

// Numbers colours in the order of their first appearance.
class Numbering {
 public:
  std::int32_t operator()(std::uint64_t colour) {
    if (2 * (used_ + 1) > table_.size()) grow();
    Entry& entry = table_[find(colour)];
    if (entry.number < 0) entry = {colour, static_cast<std::int32_t>(used_++)};
    return entry.number;
  }
  std::size_t count() const { return used_; }

 private:
  struct Entry {
    std::uint64_t colour = 0;
    std::int32_t number = -1;
  };
  std::size_t find(std::uint64_t colour) const {
    std::size_t at = (colour * 0x9e3779b97f4a7c15u >> 20) & (table_.size() - 1);
    while (table_[at].number >= 0 && table_[at].colour != colour) at = (at + 1) & (table_.size() - 1);
    return at;
  }
  void grow() {
    std::vector<Entry> old(table_.size() * 2);
    old.swap(table_);
    for (const Entry& entry : old)
      if (entry.number >= 0) table_[find(entry.colour)] = entry;
  }
  std::vector<Entry> table_ = std::vector<Entry>(64);
  std::size_t used_ = 0;
};

std::vector<std::int32_t> numbered(const Colours& colours) {
  Numbering numbering;
  std::vector<std::int32_t> numbers;
  numbers.reserve(colours.size());
  for (const std::uint64_t colour : colours) numbers.push_back(numbering(colour));
  return numbers;
}

std::size_t distinct(const Colours& colours) {
  Numbering numbering;
  for (const std::uint64_t colour : colours) numbering(colour);
  return numbering.count();
}

struct Colouring {
  Colours ranks = {}, flows = {}, links = {};
  std::size_t classes() const { return distinct(ranks) + distinct(flows) + distinct(links); }
};

class Refinement {
 public:
  Refinement(const Ranks& ranks, const Patterns& patterns, const Flows& flows, const UsedLinks& used)
      : ranks_(ranks), patterns_(patterns), flows_(flows), used_(used) {
    std::vector<std::int32_t> narrow(used.limits.size(), -1);
    for (std::size_t l = 0; l < narrow.size(); ++l) {
      if (!used.limits[l]) continue;
      narrow[l] = static_cast<std::int32_t>(narrow_.size());
      narrow_.push_back(l);
    }
    first_.reserve(static_cast<std::size_t>(flows.count()) + 1);
    crossed_.reserve(used.crossed.size());
    for (int f = 0; f < flows.count(); ++f) {
      for (auto k = first_of(f); k < first_of(f + 1); ++k)
        if (const std::int32_t link = narrow[static_cast<std::size_t>(used.crossed[k])]; link >= 0) crossed_.push_back(link);
      first_.push_back(crossed_.size());
    }
  }

  // Links that cannot limit take no part in the refinement; at its end they are coloured by capacity and the flows that cross them.
  Colours all_links(const Colouring& now) const {
    Colours all(used_.limits.size(), 0);
    for (int f = 0; f < flows_.count(); ++f) {
      const std::uint64_t mine = mixed(13, now.flows[static_cast<std::size_t>(f)]);
      for (auto k = first_of(f); k < first_of(f + 1); ++k) all[static_cast<std::size_t>(used_.crossed[k])] += mine;
    }
    for (std::size_t l = 0; l < all.size(); ++l) all[l] = mixed(capacity_colour(l), all[l]);
    for (std::size_t n = 0; n < now.links.size(); ++n) all[narrow_[n]] = now.links[n];
    return all;
  }
  std::uint64_t capacity_colour(std::size_t link) const { return mixed(7, std::bit_cast<std::uint64_t>(used_.capacity[link])); }

  // In an exchange, sender and receiver are told apart; members of a group are not.
  std::uint64_t parties(const Colouring& now, int flow) const {
    std::uint64_t sum = 0, place = 17;
    const std::span<const RankId> all = flows_.parties(flow);
    const bool exchange = all.size() == 2 && flows_.is_exchange(flow);
    for (const RankId party : all) {
      sum += mixed(place, now.ranks[party.index()]);
      if (exchange) ++place;
    }
    return sum;
  }

  Colouring stable(Colours initial) const {
    Colouring now{std::move(initial), Colours(static_cast<std::size_t>(flows_.count())), {}};
    now.links.reserve(narrow_.size());
    for (const std::size_t l : narrow_) now.links.push_back(capacity_colour(l));
    for (std::size_t before = 0, classes = 1; classes != before;) {
      refine(now);
      before = std::exchange(classes, now.classes());
    }
    now.links = all_links(now);
    return now;
  }

 private:
  std::size_t first_of(int flow) const { return static_cast<std::size_t>(flows_.first_link[static_cast<std::size_t>(flow)]); }

  void refine(Colouring& now) const {
    Colours crossing(now.links.size(), 0), under;
    under.reserve(now.links.size());
    for (const std::uint64_t link : now.links) under.push_back(mixed(11, link));
    for (std::size_t f = 0; f < now.flows.size(); ++f) {
      std::uint64_t over = 0;
      for (std::size_t k = first_[f]; k < first_[f + 1]; ++k) over += under[static_cast<std::size_t>(crossed_[k])];
      const std::uint64_t what = mixed(flows_.kind[f], std::bit_cast<std::uint64_t>(flows_.bytes[f]));
      now.flows[f] = mixed(mixed(what, over), parties(now, static_cast<int>(f)));
      const std::uint64_t mine = mixed(13, now.flows[f]);
      for (std::size_t k = first_[f]; k < first_[f + 1]; ++k) crossing[static_cast<std::size_t>(crossed_[k])] += mine;
    }
    for (std::size_t l = 0; l < now.links.size(); ++l) now.links[l] = mixed(now.links[l], crossing[l]);
    for (std::size_t r = 0; r < now.ranks.size(); ++r) now.ranks[r] = rank_colour(now, {static_cast<std::int32_t>(r)});
  }

  std::uint64_t rank_colour(const Colouring& now, RankId rank) const {
    std::uint64_t colour = now.ranks[rank.index()];
    for (const int slot : patterns_.slots[ranks_.role(rank).index()]) {
      const Flows::Asked& asked = flows_.at(rank, slot);
      for (int phase = 0; phase < asked.phases; ++phase)
        colour = mixed(colour, now.flows[static_cast<std::size_t>(asked.first + phase)]);
    }
    return colour;
  }

  const Ranks& ranks_;
  const Patterns& patterns_;
  const Flows& flows_;
  const UsedLinks& used_;
  std::vector<std::size_t> narrow_ = {};    // the links that can limit, as numbers of UsedLinks
  std::vector<std::int32_t> crossed_ = {};  // entries of those, as numbers of narrow_, flow by flow
  std::vector<std::size_t> first_ = {0};
};

// Ranks of equal colour may share a class: they have the same role and speed, and are both root or not of each gather with places at its
// root. With Folding::Tp they also have equal coordinates on all axes but the tensor axis.
Colours initial_colours(const Plan& plan, const Ranks& ranks, const std::vector<RankSpeed>& paces, bool only_tp) {
  Colours colours;
  colours.reserve(static_cast<std::size_t>(ranks.count()));
  const std::vector<GroupId> rooted = groups_with_root_only_blocks(plan);
  for (std::int32_t r = 0; r < ranks.count(); ++r) {
    const RoleId role = ranks.role({r});
    const RankSpeed& pace = paces[static_cast<std::size_t>(r)];
    std::uint64_t colour = mixed(static_cast<std::uint64_t>(role.value), std::bit_cast<std::uint64_t>(pace.slowdown));
    if (pace.fewer_rows) colour = mixed(colour, 23);
    for (const AxisId axis : plan.roles[role.index()].axes)
      if (only_tp && plan.axes[axis.index()].dense != DenseKind::Tensor)
        colour = mixed(colour, static_cast<std::uint64_t>(ranks.coordinate({r}, axis)));
    for (const GroupId group : rooted) colour = mixed(colour, is_root(plan, ranks, {r}, group));
    colours.push_back(colour);
  }
  return colours;
}

// One class per role and speed, whatever links its ranks have. A flow crosses what any flow of its class crosses, so it is as slow as
// the slowest of them.
Colouring by_role(Colours roles, const Refinement& refinement, const Flows& flows) {
  Colouring all{std::move(roles), Colours(static_cast<std::size_t>(flows.count())), {}};
  for (int f = 0; f < flows.count(); ++f)
    all.flows[static_cast<std::size_t>(f)] = mixed(flows.kind[static_cast<std::size_t>(f)], refinement.parties(all, f));
  all.links = refinement.all_links(all);
  return all;
}

// Every rank, flow and link a class of its own.
Colouring apart(const Ranks& ranks, const Flows& flows, const UsedLinks& used) {
  Colouring all{Colours(static_cast<std::size_t>(ranks.count())), Colours(static_cast<std::size_t>(flows.count())),
                Colours(used.ids.size())};
  std::iota(all.ranks.begin(), all.ranks.end(), 0);
  std::iota(all.flows.begin(), all.flows.end(), 0);
  std::iota(all.links.begin(), all.links.end(), 0);
  return all;
}

void number_ranks(Quotient& q, const Ranks& ranks, const Colours& colours) {
  for (const std::int32_t number : numbered(colours)) {
    const RankId rank{static_cast<std::int32_t>(q.class_of.size())};
    if (number == static_cast<std::int32_t>(q.classes.size())) q.classes.push_back({.role = ranks.role(rank)});
    q.classes[static_cast<std::size_t>(number)].members.push_back(rank);
    q.class_of.push_back({number});
  }
}

void number_flows(Quotient& q, const Flows& flows, const Colours& colours) {
  q.flow_of = numbered(colours);
  for (int f = 0; f < flows.count(); ++f)
    if (q.flow_of[static_cast<std::size_t>(f)] == static_cast<std::int32_t>(q.flows.size()))
      q.flows.push_back({.example = f, .bytes = flows.bytes[static_cast<std::size_t>(f)]});
}

// Which flow classes cross a link of each class, and how often: seen at the first link of the class.
std::vector<std::vector<Crossing>> number_links(Quotient& q, const Flows& flows, const UsedLinks& used, const Colours& colours,
                                                std::vector<char>& limits) {
  const std::vector<std::int32_t> class_of = numbered(colours);
  std::vector<std::int32_t> seen_at(used.ids.size(), -1);  // [link]: its class, if it is the first link of the class
  for (std::size_t l = 0; l < used.ids.size(); ++l) {
    if (class_of[l] == static_cast<std::int32_t>(q.links.size())) {
      seen_at[l] = class_of[l];
      limits.push_back(used.limits[l]);
      q.links.push_back({.bandwidth = {used.capacity[l]}});
    }
    q.links[static_cast<std::size_t>(class_of[l])].links.push_back(used.ids[l]);
  }
  std::vector<std::vector<Crossing>> crossings(q.links.size());
  for (int f = 0; f < flows.count(); ++f) {
    const auto i = static_cast<std::size_t>(f);
    for (auto k = static_cast<std::size_t>(flows.first_link[i]); k < static_cast<std::size_t>(flows.first_link[i + 1]); ++k) {
      const std::int32_t link_class = seen_at[static_cast<std::size_t>(used.crossed[k])];
      if (link_class >= 0) crossings[static_cast<std::size_t>(link_class)].push_back({q.flow_of[i], 1, f, false});
    }
  }
  for (std::vector<Crossing>& all : crossings) {
    std::stable_sort(all.begin(), all.end(), [](const Crossing& a, const Crossing& b) { return a.flow < b.flow; });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (kept > 0 && all[kept - 1].flow == all[i].flow) {
        all[kept - 1].times += 1;
        all[kept - 1].several = all[kept - 1].several || all[kept - 1].example != all[i].example;
      } else {
        all[kept++] = all[i];
      }
    }
    all.resize(kept);
  }
  return crossings;
}

void make_bundles(Quotient& q, std::vector<std::vector<Crossing>> crossings, const std::vector<char>& limits) {
  Numbering numbering;
  for (std::size_t l = 0; l < crossings.size(); ++l) {
    std::uint64_t key = 19;
    for (const Crossing& c : crossings[l])
      key = mixed(mixed(key, static_cast<std::uint64_t>(c.flow)), static_cast<std::uint64_t>(c.times));
    const std::int32_t b = numbering(key);
    q.bundle_of.push_back(b);
    if (b == static_cast<std::int32_t>(q.bundles.size())) {
      for (const Crossing& c : crossings[l])
        q.flows[static_cast<std::size_t>(c.flow)].bundles.push_back({b, c.times, c.example, c.several});
      q.bundles.push_back({{}, std::move(crossings[l])});
    }
    BytesPerSecond& narrowest = q.bundles[static_cast<std::size_t>(b)].narrowest;
    if (limits[l]) narrowest = narrowest.value > 0 ? std::min(narrowest, q.links[l].bandwidth) : q.links[l].bandwidth;
  }
}

}  // namespace

Quotient fold(const Plan& plan, const Ranks& ranks, const Network& network, const Patterns& patterns, const Flows& flows,
              const std::vector<RankSpeed>& paces, Folding folding, bool find_twins, bool one_class_per_role) {
  const UsedLinks used = used_links(network, flows);
  const Refinement refinement(ranks, patterns, flows, used);
  const auto refined = [&](bool only_tp) { return refinement.stable(initial_colours(plan, ranks, paces, only_tp)); };
  Quotient q;
  Colouring colouring;
  switch (folding) {
    case Folding::None: colouring = apart(ranks, flows, used); break;
    case Folding::Tp: colouring = refined(true); break;
    case Folding::Full:
      colouring = one_class_per_role ? by_role(initial_colours(plan, ranks, paces, false), refinement, flows) : refined(false);
      break;
  }
  number_ranks(q, ranks, colouring.ranks);
  number_flows(q, flows, colouring.flows);
  std::vector<char> limits;  // [link class]
  std::vector<std::vector<Crossing>> crossings = number_links(q, flows, used, colouring.links, limits);
  make_bundles(q, std::move(crossings), limits);
  if (folding == Folding::Full || !find_twins) {
    for (const ClassId c : q.class_of) q.twins.push_back(c.value);
  } else {
    q.twins = numbered(refined(false).ranks);
  }
  return q;
}

}  // namespace foreshard::player
