#include "sim/slowing.h"

#include <algorithm>

namespace foreshard::sim {

// Kernels that together ask for everything still leave this much.
constexpr double kLeast = 0.02;

Slowing::Slowing(const Cast& cast, Engine& engine)
    : cast_(cast),
      engine_(engine),
      worker_of_(static_cast<std::size_t>(cast.streams), -1),
      disturbs_(static_cast<std::size_t>(cast.streams), false),
      taken_(static_cast<std::size_t>(cast.streams), 0) {
  for (const Cast::Player& who : cast.players) add(who);
}

void Slowing::add(const Cast::Player& who) {
  std::vector<char> computes(static_cast<std::size_t>(who.streams), false), takes(computes);
  for (const SegmentSteps* steps : *who.steps) {
    if (steps == nullptr) continue;
    for (const Step& step : steps->steps) {
      if (step.kind == StepKind::Compute) computes[static_cast<std::size_t>(step.stream)] = true;
      if (step.sm_share > 0) takes[static_cast<std::size_t>(step.stream)] = true;
    }
  }
  bool any = false;
  for (std::size_t s = 0; s < takes.size(); ++s) {  // what is on the only compute stream does not run beside it
    const auto others = std::count(computes.begin(), computes.end(), true) - (computes[s] ? 1 : 0);
    disturbs_[static_cast<std::size_t>(who.first_stream) + s] = takes[s] && others > 0;
    any = any || (takes[s] && others > 0);
  }
  for (std::size_t s = 0; any && s < computes.size(); ++s)
    if (computes[s]) worker_of_[static_cast<std::size_t>(who.first_stream) + s] = engine_.add_worker();
}

// The sum is taken anew each time, so that shares that come and go leave no rounding behind.
void Slowing::change(int player, int stream, double sm_share) {
  if (!disturbs_[static_cast<std::size_t>(stream)]) return;
  taken_[static_cast<std::size_t>(stream)] = sm_share;
  const Cast::Player& who = cast_.players[static_cast<std::size_t>(player)];
  const auto first = static_cast<std::size_t>(who.first_stream), end = first + static_cast<std::size_t>(who.streams);
  double sum = 0;
  for (std::size_t s = first; s < end; ++s) sum += taken_[s];
  for (std::size_t s = first; s < end; ++s)
    if (worker_of_[s] >= 0) engine_.set_speed(worker_of_[s], std::max(kLeast, 1 - sum));
}

}  // namespace foreshard::sim
