#include "strategy/state/sum_order.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

namespace foreshard {

namespace {

class Sending {
 public:
  Sending(const std::vector<SummedUnit>& units, const SumChannel& channel)
      : units_(units), channel_(channel), sent_(units.size()) {}

  SumSchedule run() {
    SumSchedule schedule;
    double now = 0;
    for (int unit = next(now); unit >= 0; unit = next(now)) {
      SentPart part = cut(unit);
      const double begins = std::max(now, may_leave(part.bytes));
      if (begins > now) {  // something more urgent may be ready by then
        now = begins;
        continue;
      }
      wire_free_ = std::max(wire_free_, now + channel_.latency.value) + part.bytes / channel_.bandwidth.value;
      part.begin = {now}, part.end = {wire_free_};
      sent_[static_cast<std::size_t>(unit)] += part.bytes;
      under_way_.push_back(part);
      schedule.parts.push_back(part);
    }
    schedule.end = forward(schedule.parts);
    return schedule;
  }

 private:
  double left(std::size_t unit) const { return units_[unit].bytes - sent_[unit]; }

  // The unit whose next part is sent; advances `now` until some unit is ready. -1: everything is sent.
  int next(double& now) const {
    double earliest = std::numeric_limits<double>::infinity();
    for (std::size_t u = 0; u < units_.size(); ++u)
      if (left(u) > 0) earliest = std::min(earliest, units_[u].ready.value);
    if (std::isinf(earliest)) return -1;
    now = std::max(now, earliest);
    int best = -1;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (left(u) <= 0 || units_[u].ready.value > now) continue;
      const bool sooner =
          best < 0 || (channel_.order == SumOrder::Ready && units_[u].ready < units_[static_cast<std::size_t>(best)].ready);
      if (sooner) best = static_cast<int>(u);
    }
    return best;
  }

  SentPart cut(int unit) const {
    const auto at = static_cast<std::size_t>(unit);
    const double whole = channel_.partition > 0 ? std::min(channel_.partition, left(at)) : left(at);
    // A remainder that is only rounding error is sent with this part.
    const double bytes = left(at) - whole < 1e-9 * units_[at].bytes ? left(at) : whole;
    return {.unit = unit, .first = sent_[at], .bytes = bytes};
  }

  // The earliest time at which the credit allows `bytes` more in flight; 0: at once.
  double may_leave(double bytes) const {
    double held = 0;
    for (auto part = under_way_.rbegin(); part != under_way_.rend(); ++part) {
      held += part->bytes;
      if (held + bytes > channel_.credit * (1 + 1e-12)) return part->end.value;
    }
    return 0;
  }

  Seconds forward(const std::vector<SentPart>& parts) const {
    std::vector<double> summed(units_.size());
    for (std::size_t u = 0; u < units_.size(); ++u) summed[u] = units_[u].ready.value;
    for (const SentPart& part : parts)
      summed[static_cast<std::size_t>(part.unit)] = std::max(summed[static_cast<std::size_t>(part.unit)], part.end.value);
    double end = 0;  // the backward is done when the last unit is ready
    for (const SummedUnit& unit : units_) end = std::max(end, unit.ready.value);
    for (std::size_t u = 0; u < units_.size(); ++u) end = std::max(end, summed[u]) + units_[u].forward.value;
    return {end};
  }

  const std::vector<SummedUnit>& units_;
  const SumChannel& channel_;
  std::vector<double> sent_;
  std::deque<SentPart> under_way_ = {};
  double wire_free_ = 0;
};

}  // namespace

SumSchedule schedule_sums(const std::vector<SummedUnit>& units, const SumChannel& channel) {
  return Sending(units, channel).run();
}

}  // namespace foreshard
