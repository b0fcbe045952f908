#include "sim/slowing.h"

#include <algorithm>
#include <string>

#include "core/error.h"

namespace foreshard::sim {
namespace {

constexpr std::size_t kMostSpeeds = 1024;
constexpr double kLeast = 0.02;  // kernels that together ask for everything still leave this much

// Speeds for every combination of "nothing" or one of its shares on each stream; the last stream varies slowest.
std::vector<double> speeds_of(const std::vector<std::vector<double>>& shares) {
  std::vector<double> taken{0};
  for (const std::vector<double>& of_stream : shares) {
    const std::vector<double> before = taken;
    for (const double share : of_stream)
      for (const double sum : before) taken.push_back(sum + share);
    if (taken.size() > kMostSpeeds) return {};
  }
  for (double& sum : taken) sum = std::max(kLeast, 1 - sum);
  return taken;
}

}  // namespace

Slowing::Slowing(const Plan& plan, const Cast& cast, Engine& engine)
    : engine_(engine),
      worker_of_(static_cast<std::size_t>(cast.streams), -1),
      levels_(static_cast<std::size_t>(cast.streams)),
      workers_(cast.players.size()),
      speed_(cast.players.size(), 0) {
  for (std::size_t p = 0; p < cast.players.size(); ++p) add(static_cast<int>(p), plan, cast);
}

void Slowing::add(int player, const Plan& plan, const Cast& cast) {
  const Cast::Player& who = cast.players[static_cast<std::size_t>(player)];
  std::vector<std::vector<double>> shares(static_cast<std::size_t>(who.streams));
  std::vector<char> computes(static_cast<std::size_t>(who.streams), false);
  for (const SegmentSteps* steps : *who.steps) {
    if (steps == nullptr) continue;
    for (const Step& step : steps->steps) {
      std::vector<double>& of_stream = shares[static_cast<std::size_t>(step.stream)];
      if (step.kind == StepKind::Compute) computes[static_cast<std::size_t>(step.stream)] = true;
      if (step.sm_share <= 0 || std::find(of_stream.begin(), of_stream.end(), step.sm_share) != of_stream.end()) continue;
      of_stream.push_back(step.sm_share);
    }
  }
  for (std::size_t s = 0; s < shares.size(); ++s) {  // what is on the only compute stream does not run beside it
    const auto others = std::count(computes.begin(), computes.end(), true) - (computes[s] ? 1 : 0);
    if (others == 0) shares[s].clear();
  }
  if (std::all_of(shares.begin(), shares.end(), [](const std::vector<double>& s) { return s.empty(); })) return;
  const std::vector<double> speeds = speeds_of(shares);
  if (speeds.empty())
    throw Error("plan", "role '" + plan.roles[who.role.index()].name + "' sm_share", "too many different shares",
                "at most " + std::to_string(kMostSpeeds) + " combinations over its streams");
  int weight = 1;
  for (int s = 0; s < who.streams; ++s) {
    const auto stream = static_cast<std::size_t>(who.first_stream + s);
    int nth = 0;
    for (const double share : shares[static_cast<std::size_t>(s)]) levels_[stream].push_back({share, ++nth * weight});
    weight *= nth + 1;
    if (!computes[static_cast<std::size_t>(s)]) continue;
    worker_of_[stream] = engine_.add_worker(speeds);
    workers_[static_cast<std::size_t>(player)].push_back(worker_of_[stream]);
  }
}

void Slowing::change(int player, int stream, double sm_share, int sign) {
  for (const Level& level : levels_[static_cast<std::size_t>(stream)]) {
    if (level.share != sm_share) continue;
    int& speed = speed_[static_cast<std::size_t>(player)];
    speed += sign * level.weight;
    for (const int worker : workers_[static_cast<std::size_t>(player)]) engine_.set_speed(worker, speed);
    return;
  }
}

}  // namespace foreshard::sim
