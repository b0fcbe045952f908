#include "strategy/estimate/estimate_speeds.h"

#include <algorithm>

namespace foreshard {

namespace {

constexpr double kLeastLeft = 0.02;  // of the compute units, as on the simulator

std::size_t place(int i) { return static_cast<std::size_t>(i); }

}  // namespace

static PlaySpeeds::Kind::Stands stands_of(const TalkTimes& talk, int rank) {
  PlaySpeeds::Kind::Stands stands;
  for (int kind = 0; kind < 3; ++kind) {
    const TalkOfChunk& chunk = talk.at(rank, kind);
    int doing = 3 * kind;
    for (const TalkStep* step : {&chunk.forward, &chunk.backward, &chunk.last_backward}) {
      for (std::size_t which = 0; which < Links::kStills; ++which)
        stands[place(doing)][which] = step->still[which] > 0 ? step->still[which] / step->compute : 0;
      ++doing;
    }
  }
  return stands;
}

PlaySpeeds::Kind::Kind(const TalkTimes& talk, int all)
    : ranks(all), alike(talk.by_rank.empty()), sums(talk.sums), share(talk.share) {
  for (int rank = 0; rank < (alike ? 1 : ranks); ++rank) stands[place(rank)] = stands_of(talk, rank);
}

PlaySpeeds::PlaySpeeds(const Kind& kind, const Ways& ways)
    : kind_(kind), ways_(ways), links_(ways_.links, kind_.sums, kind_.ranks) {
  find({}, rates_[0]);  // nobody asks for nothing: what asked_ says at first
}

PlaySpeeds& PlayMemory::of(const TalkTimes& talk, const Ways& ways, int ranks) {
  const PlaySpeeds::Kind kind(talk, ranks);
  const auto known = std::ranges::find_if(kinds_, [&](const auto& one) { return one->is_of(kind, ways); });
  if (known != kinds_.end()) {
    std::rotate(kinds_.begin(), known, known + 1);
    return *kinds_.front();
  }
  if (kinds_.size() == kKinds) kinds_.pop_back();
  return **kinds_.insert(kinds_.begin(), std::make_unique<PlaySpeeds>(kind, ways));
}

const Rates& PlaySpeeds::at(const Moment& moment) {
  const std::uint64_t mixed = (moment.flows * 0x9E3779B97F4A7C15u) ^ (moment.doing * 0xC2B2AE3D27D4EB4Fu);
  const std::size_t i = moment == Moment{} ? 0 : 1 + (mixed >> 32) % (kKept - 1);
  if (asked_[i] != moment) find(moment, rates_[i]), asked_[i] = moment;
  return rates_[i];
}

// Kernels of talk and of transfers, at both ends, take compute units.
void PlaySpeeds::find(const Moment& moment, Rates& rates) {
  std::array<double, Ways::kMost> taken = {};
  each_bit(moment.flows, [&](int flow) {
    const int rank = flow / Links::kFlows, which = flow % Links::kFlows;
    if (which == Links::Shards || which == Links::Replicas) {
      taken[place(rank)] += kind_.share;
    } else {
      const double share = (which == Links::Output ? ways_.output : ways_.gradient)[place(rank)].share;
      taken[place(rank)] += share;
      taken[place((rank + (which == Links::Output ? 1 : kind_.ranks - 1)) % kind_.ranks)] += share;
    }
  });
  for (int rank = 0; rank < kind_.ranks; ++rank) rates.computes[place(rank)] = std::max(kLeastLeft, 1 - taken[place(rank)]);
  links_.find(moment.flows, LinkSpeeds::kNone, without_);
  each_bit(moment.flows, [&](int flow) { rates.flows[place(flow)] = without_.of[place(flow)]; });
  if (find_stills(moment)) stand_still(moment.flows, rates);
  each_bit(moment.flows, [&](int flow) {
    if (flow % Links::kFlows <= Links::Replicas) rates.talks[place(flow / Links::kFlows)] = rates.flows[place(flow)];
  });
}

// Of flows, those that a collective meets: what its rank says comes before or behind one on the same stream.
static std::uint64_t others(std::uint64_t flows, int still) {
  if (still % Links::kStills == Links::Tensor) return flows;
  const int rank = still / Links::kStills;
  return flows & ~(Links::bit(Links::flow(rank, Links::Shards)) | Links::bit(Links::flow(rank, Links::Replicas)));
}

bool PlaySpeeds::find_stills(const Moment& moment) {
  count_ = 0;
  for (int rank = 0; rank < kind_.ranks; ++rank) {
    const auto doing = static_cast<int>(moment.doing >> (4 * rank) & 15);
    if (doing == 0) continue;
    const auto& stands = kind_.stands[place(kind_.alike ? 0 : rank)][place(doing - 1)];
    for (int which = 0; which < Links::kStills; ++which)
      if (const double part = stands[place(which)]; part > 0) {
        const int id = Links::still(rank, which);
        const std::uint64_t meets = others(moment.flows, id);
        links_.find(meets, id, with_);
        const double slower = 1 / with_.still;
        stills_[place(count_++)] = {rank, id, part, meets != moment.flows, slower, slower};
      }
  }
  return count_ > 0;
}

// Collectives that computes wait for are held up by what they meet all the time. Two ranks that compute and talk in turn drift past each
// other: a collective of S seconds is held up for S S' / T' beside one of S' seconds in every T' (any phase as likely as any other).
void PlaySpeeds::settle(const Rates& rates) {
  constexpr int kPasses = 4;
  for (int pass = 0; pass <= kPasses; ++pass) {
    std::array<double, Ways::kMost> part = {}, talk = {};
    for (int i = 0; i < count_; ++i) {
      const Still& it = stills_[place(i)];
      part[place(it.rank)] += it.part, talk[place(it.rank)] += it.part * it.slower;
    }
    for (int rank = 0; rank < kind_.ranks; ++rank)
      rate_[place(rank)] = 1 / ((1 - part[place(rank)]) / rates.computes[place(rank)] + talk[place(rank)]);
    if (pass == kPasses) return;
    bool meets = false;
    for (int i = 0; i < count_; ++i) {
      Still& it = stills_[place(i)];
      double more = 0;
      for (int j = 0; j < count_; ++j)
        if (const Still& other = stills_[place(j)]; other.rank != it.rank && !other.in_turn)
          more += other.part * rate_[place(other.rank)] * ways_.links.slower[place(it.id * ways_.links.stills + other.id)];
      meets |= more > 0;
      it.slower = 0.5 * (it.slower + it.alone + more);
    }
    if (!meets) return;
  }
}

// What is under way all the time is held up by them for as long as they are there; and no link is more than full.
void PlaySpeeds::stand_still(std::uint64_t flows, Rates& rates) {
  settle(rates);
  LinkSpeeds::Loads loads;
  links_.clear(loads);
  for (int i = 0; i < count_; ++i) {
    const Still& it = stills_[place(i)];
    const double there = std::min(1.0, it.part * it.slower * rate_[place(it.rank)]);
    const std::uint64_t meets = others(flows, it.id);
    links_.find(meets, it.id, with_);
    each_bit(meets,
             [&](int flow) { rates.flows[place(flow)] *= 1 - there * (1 - with_.of[place(flow)] / without_.of[place(flow)]); });
    each_bit(flows & ~meets, [&](int flow) { rates.flows[place(flow)] *= 1 - there; });
    LinkSpeeds::add(loads, ways_.links.standing(it.id), it.part * rate_[place(it.rank)]);
  }
  each_bit(flows, [&](int flow) { LinkSpeeds::add(loads, links_.traffic(flow), rates.flows[place(flow)]); });
  each_bit(flows, [&](int flow) { rates.flows[place(flow)] /= LinkSpeeds::fullest(loads, links_.traffic(flow)); });
  for (int i = 0; i < count_; ++i) {
    const Still& it = stills_[place(i)];
    double& computes = rates.computes[place(it.rank)];
    computes = std::min(computes, rate_[place(it.rank)] / LinkSpeeds::fullest(loads, ways_.links.standing(it.id)));
  }
}

}  // namespace foreshard
