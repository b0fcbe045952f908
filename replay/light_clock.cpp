#include "replay/light_clock.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"

namespace foreshard::player {

constexpr std::size_t kMostKnown = 1 << 16;

int LightClock::add_link(BytesPerSecond capacity) {
  FS_ASSERT(std::isfinite(capacity.value) && capacity.value > 0);
  capacity_.push_back(capacity.value);
  on_link_.emplace_back();
  link_seen_.push_back(0);
  return static_cast<int>(capacity_.size()) - 1;
}

int LightClock::add_route(const std::vector<int>& links) {
  FS_ASSERT(!links.empty());
  std::vector<int> sorted = links;
  std::sort(sorted.begin(), sorted.end());
  std::vector<LinkShare> route;
  for (const int link : sorted) {
    FS_ASSERT(link >= 0 && static_cast<std::size_t>(link) < capacity_.size());
    if (route.empty() || route.back().link != link)
      route.push_back({link, 1});
    else
      ++route.back().weight;
  }
  routes_.push_back(std::move(route));
  return static_cast<int>(routes_.size()) - 1;
}

int LightClock::add_worker() {
  workers_.emplace_back();
  return static_cast<int>(workers_.size()) - 1;
}

void LightClock::plan_end(Progress& progress, Kind kind, std::uint32_t which) {
  queue_.plan(now_ + progress.left / progress.speed, kind, which, ++progress.version);
}

// Accounts for the work done until now, and continues at `speed`.
void LightClock::proceed(Progress& progress, double speed) const {
  progress.left = std::max(0.0, progress.left - (now_ - progress.since) * progress.speed);
  progress.since = now_;
  progress.speed = speed;
}

void LightClock::after(Seconds delay, Token token) {
  FS_ASSERT(std::isfinite(delay.value) && delay.value >= 0);
  queue_.plan(now_ + delay.value, kDelay, token.what, token.which);
}

void LightClock::compute(int worker, Seconds at_full_speed, Token token) {
  FS_ASSERT(std::isfinite(at_full_speed.value) && at_full_speed.value >= 0);
  Worker& w = workers_[static_cast<std::size_t>(worker)];
  FS_ASSERT(!w.busy);
  w.busy = true;
  w.work = {.left = at_full_speed.value, .speed = w.speed, .since = now_, .version = w.work.version, .token = token};
  plan_end(w.work, kCompute, static_cast<std::uint32_t>(worker));
}

void LightClock::set_speed(int worker, double speed) {
  FS_ASSERT(std::isfinite(speed) && speed > 0);
  Worker& w = workers_[static_cast<std::size_t>(worker)];
  if (speed == w.speed) return;
  w.speed = speed;
  if (!w.busy) return;
  proceed(w.work, speed);
  plan_end(w.work, kCompute, static_cast<std::uint32_t>(worker));
}

void LightClock::transfer(int route, double bytes, Token token) {
  FS_ASSERT(std::isfinite(bytes) && bytes > 0);
  FS_ASSERT(route >= 0 && static_cast<std::size_t>(route) < routes_.size());
  if (free_.empty()) {
    free_.push_back(static_cast<int>(transfers_.size()));
    transfers_.emplace_back();
  }
  const int place = free_.back();
  free_.pop_back();
  Transfer& transfer = transfers_[static_cast<std::size_t>(place)];
  transfer.route = route;
  transfer.bytes = {.left = bytes, .speed = 0, .since = now_, .version = transfer.bytes.version, .token = token};
  enter(place);
}

void LightClock::enter(int place) {
  Transfer& transfer = transfers_[static_cast<std::size_t>(place)];
  transfer.places.clear();
  for (const LinkShare& crossing : routes_[static_cast<std::size_t>(transfer.route)]) {
    std::vector<int>& others = on_link_[static_cast<std::size_t>(crossing.link)];
    transfer.places.push_back(static_cast<int>(others.size()));
    others.push_back(place);
    changed_.push_back(crossing.link);
  }
}

void LightClock::leave(int place) {
  Transfer& transfer = transfers_[static_cast<std::size_t>(place)];
  const std::vector<LinkShare>& route = routes_[static_cast<std::size_t>(transfer.route)];
  for (std::size_t c = 0; c < route.size(); ++c) {
    std::vector<int>& others = on_link_[static_cast<std::size_t>(route[c].link)];
    const int last = others.back(), at = transfer.places[c];
    others[static_cast<std::size_t>(at)] = last;
    others.pop_back();
    if (last != place) {  // the transfer that took its element needs the new index
      Transfer& moved = transfers_[static_cast<std::size_t>(last)];
      const std::vector<LinkShare>& its = routes_[static_cast<std::size_t>(moved.route)];
      for (std::size_t i = 0; i < its.size(); ++i)
        if (its[i].link == route[c].link) moved.places[i] = at;
    }
    if (!others.empty()) changed_.push_back(route[c].link);
  }
  transfer.route = -1;
  free_.push_back(place);
}

// Collects in sharing_ all transfers connected with `link` by shared links; none if this was done since seen_ was raised.
void LightClock::gather(int link) {
  sharing_.clear();
  if (link_seen_[static_cast<std::size_t>(link)] == seen_) return;
  link_seen_[static_cast<std::size_t>(link)] = seen_;
  links_.assign(1, link);
  while (!links_.empty()) {
    const int here = links_.back();
    links_.pop_back();
    for (const int place : on_link_[static_cast<std::size_t>(here)]) {
      Transfer& transfer = transfers_[static_cast<std::size_t>(place)];
      if (transfer.seen == seen_) continue;
      transfer.seen = seen_;
      sharing_.push_back(place);
      for (const LinkShare& crossing : routes_[static_cast<std::size_t>(transfer.route)]) {
        std::uint32_t& seen = link_seen_[static_cast<std::size_t>(crossing.link)];
        if (seen == seen_) continue;
        seen = seen_;
        links_.push_back(crossing.link);
      }
    }
  }
}

std::size_t LightClock::Hash::operator()(const std::vector<int>& routes) const {
  std::size_t sum = routes.size();
  for (const int route : routes) sum = (sum ^ static_cast<std::size_t>(route)) * 0x9e3779b97f4a7c15u;
  return sum;
}

// The max-min rates of the transfers in sharing_, which it sorts by route.
const std::vector<double>& LightClock::rates() {
  const auto route = [this](int place) { return transfers_[static_cast<std::size_t>(place)].route; };
  std::sort(sharing_.begin(), sharing_.end(), [&](int a, int b) { return std::pair(route(a), a) < std::pair(route(b), b); });
  key_.clear();
  for (const int place : sharing_) key_.push_back(route(place));
  if (const auto found = known_.find(key_); found != known_.end()) return found->second;
  crossings_.clear();
  for (const int number : key_) crossings_.emplace_back(routes_[static_cast<std::size_t>(number)]);
  const std::span<const double> found = max_min_.share(capacity_, crossings_);
  if (known_.size() >= kMostKnown) known_.clear();
  return known_[key_] = {found.begin(), found.end()};
}

void LightClock::share() {
  ++seen_;
  for (const int link : changed_) {
    gather(link);
    if (sharing_.empty()) continue;
    const std::vector<double>& found = rates();
    for (std::size_t i = 0; i < sharing_.size(); ++i) {
      Progress& bytes = transfers_[static_cast<std::size_t>(sharing_[i])].bytes;
      if (found[i] == bytes.speed) continue;
      proceed(bytes, found[i]);
      plan_end(bytes, kTransfer, static_cast<std::uint32_t>(sharing_[i]));
    }
  }
  changed_.clear();
}

bool LightClock::is_current(const Event& event) const {
  switch (static_cast<Kind>(event.kind)) {
    case kDelay: return true;
    case kCompute: return workers_[event.which].busy && workers_[event.which].work.version == event.version;
    case kTransfer: return transfers_[event.which].route >= 0 && transfers_[event.which].bytes.version == event.version;
  }
  return false;
}

Token LightClock::finish(const Event& event) {
  switch (static_cast<Kind>(event.kind)) {
    case kDelay: return {event.which, event.version};
    case kCompute: workers_[event.which].busy = false; return workers_[event.which].work.token;
    case kTransfer: leave(static_cast<int>(event.which)); return transfers_[event.which].bytes.token;
  }
  return {};
}

void LightClock::run(Listener& listener) {
  while (true) {
    if (!changed_.empty() && (queue_.empty() || queue_.first().time > now_)) share();  // rates matter only when time passes
    if (queue_.empty()) return;
    const Event event = queue_.take_first();
    if (!is_current(event)) continue;
    now_ = std::max(now_, event.time);
    ++events_;
    listener.finished(finish(event));
  }
}

}  // namespace foreshard::player
