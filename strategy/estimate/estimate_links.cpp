#include "strategy/estimate/estimate_links.h"

#include <algorithm>

namespace foreshard {

namespace {
constexpr double kFull = 1 + 1e-9;
std::size_t at(int i) { return static_cast<std::size_t>(i); }
}  // namespace

const Links::Traffic& LinkSpeeds::traffic(int flow) const {
  return sums_ && flow % Links::kFlows == Links::Shards ? links_.sums[at(flow / Links::kFlows)] : links_.traffic[at(flow)];
}

const Links::Traffic& Links::standing(int still) const {
  const int rank = still / kStills;
  if (still % kStills == Tensor) return tensors[at(rank)];
  return traffic[at(flow(rank, still % kStills == OfShards ? Shards : Replicas))];
}

// What both ask for of a link, over the whole of it.
void Links::find_slower(int ranks) {
  stills = ranks * kStills;
  slower.assign(at(stills * stills), 0);
  for (int still = 0; still < stills; ++still)
    for (int other = 0; other < stills; ++other)
      for (const Crossing& own : standing(still).crosses)
        for (const Crossing& others : standing(other).crosses)
          if (double& more = slower[at(still * stills + other)]; own.link == others.link && own.own)
            more = std::max(more, own.share + others.share - kFull);
}

LinkSpeeds::LinkSpeeds(const Links& links, bool sums, int ranks) : links_(links), sums_(sums), ranks_(ranks) {
  std::fill_n(alone_.of.begin(), ranks * Links::kFlows, 1.0);
  alone_.still = 1;
  for (int flow = 0; flow < ranks * Links::kFlows; ++flow)
    for (const Links::Crossing& crossing : traffic(flow).crosses) crossing_[at(crossing.link)] |= Links::bit(flow);
  for (int flow = 0; flow < ranks * Links::kFlows; ++flow) {
    for (const Links::Crossing& crossing : traffic(flow).crosses) meets_[at(flow)] |= crossing_[at(crossing.link)];
    if (meets_[at(flow)] != 0) meeting_ |= Links::bit(flow);
  }
}

// All of `flows` that meet the first ones, or meet others that do.
std::uint64_t LinkSpeeds::lot_of(std::uint64_t first, std::uint64_t flows) const {
  std::uint64_t lot = first;
  for (std::uint64_t more = first; more != 0;) {
    std::uint64_t met = 0;
    each_bit(more, [&](int flow) { met |= meets_[at(flow)]; });
    more = met & flows & ~lot, lot |= more;
  }
  return lot;
}

void LinkSpeeds::find(std::uint64_t flows, int still, Speeds& speeds) {
  speeds.still = 1;
  std::uint64_t left = flows & meeting_;
  each_bit(flows & ~meeting_, [&](int flow) { speeds.of[at(flow)] = 1; });
  const auto take = [&](std::uint64_t lot, int with) {
    const Speeds& found = of_lot(lot, with);
    each_bit(lot, [&](int flow) { speeds.of[at(flow)] = found.of[at(flow)]; });
    left &= ~lot;
    return found.still;
  };
  if (still != kNone) {
    std::uint64_t met = 0;
    for (const Links::Crossing& crossing : links_.standing(still).crosses) met |= crossing_[at(crossing.link)];
    if ((met & left) != 0) speeds.still = take(lot_of(met & left, left), still);
  }
  while (left != 0) take(lot_of(left & (~left + 1), left), kNone);
}

const LinkSpeeds::Speeds& LinkSpeeds::of_lot(std::uint64_t flows, int still) {
  if (still == kNone && (flows & (flows - 1)) == 0) return alone_;
  const std::size_t place = ((flows + static_cast<std::uint64_t>(still + 1)) * 0x9E3779B97F4A7C15u) >> 54;
  if (asked_[place] != flows || asked_still_[place] != still) {
    share(flows, still, speeds_[place]);
    asked_[place] = flows, asked_still_[place] = still;
  }
  return speeds_[place];
}

// Filling up: all speeds grow until a link is full; who is held up there stays, the others go on. Who crosses no link that could be full is as
// fast as alone.
void LinkSpeeds::share(std::uint64_t flows, int still, Speeds& speeds) const {
  struct Link {
    double left = 1, growing = 0, asked = 0;
    int held = 0;
  };
  struct Party {
    const Links::Traffic* traffic = nullptr;
    double* speed = nullptr;
  };
  std::array<Link, Links::kLinks> links;
  std::array<Party, Links::kMost + 1> parties;
  std::uint64_t used = 0;  // links, a bit each
  int all = 0, growing = 0;
  const auto add = [&](const Links::Traffic& traffic, double& speed) {
    parties[at(all++)] = {&traffic, &speed}, speed = 1;
    for (const Links::Crossing& crossing : traffic.crosses) {
      if (const std::uint64_t link = Links::bit(crossing.link); (used & link) == 0) used |= link, links[at(crossing.link)] = {};
      links[at(crossing.link)].asked += crossing.share;
    }
  };
  each_bit(flows, [&](int flow) { add(traffic(flow), speeds.of[at(flow)]); });
  speeds.still = 1;
  if (still != kNone) add(links_.standing(still), speeds.still);
  for (int i = 0; i < all; ++i) {
    const Party party = parties[at(i)];
    const std::vector<Links::Crossing>& crosses = party.traffic->crosses;
    const bool could = std::any_of(crosses.begin(), crosses.end(),
                                   [&](const Links::Crossing& crossing) { return links[at(crossing.link)].asked > kFull; });
    for (const Links::Crossing& crossing : crosses) {
      Link& link = links[at(crossing.link)];
      if (could)
        link.growing += crossing.share * party.traffic->growth, link.held += crossing.own;
      else
        link.left -= crossing.share;
    }
    if (could) parties[at(growing++)] = party;
  }
  while (growing > 0) {
    double least = 1e300;
    int full = -1;  // none: as fast as alone
    each_bit(used, [&](int i) {
      if (const Link& link = links[at(i)]; link.held > 0 && link.left < least * link.growing)
        least = link.left / link.growing, full = i;
    });
    least = std::max(0.0, least);
    for (int i = 0; i < growing; ++i)
      if (const double alone = 1 / parties[at(i)].traffic->growth; alone < least) least = alone, full = -1;
    for (int i = growing; i-- > 0;) {
      const auto [traffic, speed] = parties[at(i)];
      const bool stays =
          full < 0 ? least * traffic->growth >= 1 - 1e-12
                   : std::any_of(traffic->crosses.begin(), traffic->crosses.end(),
                                 [&](const Links::Crossing& crossing) { return crossing.link == full && crossing.own; });
      if (!stays) continue;
      *speed = std::clamp(least * traffic->growth, 1e-3, 1.0);
      for (const Links::Crossing& crossing : traffic->crosses) {
        Link& link = links[at(crossing.link)];
        const double grows = crossing.share * traffic->growth;
        link.left -= grows * least, link.growing -= grows, link.held -= crossing.own;
      }
      parties[at(i)] = parties[at(--growing)];
    }
  }
}

}  // namespace foreshard
