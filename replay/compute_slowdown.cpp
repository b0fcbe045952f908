#include "replay/compute_slowdown.h"

#include <algorithm>

namespace foreshard::player {

// The least share of the compute units that communication kernels leave to computes.
constexpr double kLeast = 0.02;

ComputeSlowdown::ComputeSlowdown(const PlayerInput& input, Clock& clock)
    : input_(input),
      clock_(clock),
      worker_of_(static_cast<std::size_t>(input.streams), -1),
      disturbs_(static_cast<std::size_t>(input.streams), false),
      taken_(static_cast<std::size_t>(input.streams), 0),
      going_(static_cast<std::size_t>(input.streams)) {
  for (const PlayerInput::Player& who : input.players) add(who);
}

void ComputeSlowdown::add(const PlayerInput::Player& who) {
  std::vector<char> computes(static_cast<std::size_t>(who.streams), false), takes(computes);
  for (const SegmentSteps* steps : *who.steps) {
    if (steps == nullptr) continue;
    for (const Step& step : steps->steps) {
      if (step.kind == StepKind::Compute) computes[static_cast<std::size_t>(step.stream)] = true;
      if (step.sm_share > 0) takes[static_cast<std::size_t>(step.stream)] = true;
    }
  }
  bool any = false;
  for (std::size_t s = 0; s < takes.size(); ++s) {  // communication on the only compute stream cannot run beside computes
    const auto others = std::count(computes.begin(), computes.end(), true) - (computes[s] ? 1 : 0);
    disturbs_[static_cast<std::size_t>(who.first_stream) + s] = takes[s] && others > 0;
    any = any || (takes[s] && others > 0);
  }
  for (std::size_t s = 0; any && s < computes.size(); ++s)
    if (computes[s]) worker_of_[static_cast<std::size_t>(who.first_stream) + s] = clock_.add_worker();
}

// Sums all shares on every call, so that rounding errors do not accumulate.
double ComputeSlowdown::left(int player) const {
  const PlayerInput::Player& who = input_.players[static_cast<std::size_t>(player)];
  double sum = 0;
  for (std::int32_t s = who.first_stream; s < who.first_stream + who.streams; ++s) sum += taken_[static_cast<std::size_t>(s)];
  return std::max(kLeast, 1 - sum);
}

// Accounts for the work done since the last change.
void ComputeSlowdown::go_on(Going& going) const {
  double elapsed = clock_.now().value - going.since;
  going.since = clock_.now().value;
  going.work = std::max(0.0, going.work - elapsed * going.speed);
  while (going.stretch != going.end && elapsed > 0) {
    const double speed = going.stretch->computes ? going.left : 1, rest = going.stretch->seconds - going.gone;
    const double passed = std::min(rest, elapsed * speed);
    (going.stretch->computes ? going.computes : going.communication) -= passed;
    going.gone += passed;
    elapsed -= passed / speed;
    if (passed < rest) return;
    ++going.stretch, going.gone = 0;
  }
}

// Sets the worker's speed so that it ends when the remaining stretches would end if nothing else changed.
void ComputeSlowdown::pace(int worker, Going& going, double left) {
  going.left = left;
  if (going.stretch == going.end) {
    going.speed = left;
  } else {
    const double takes = std::max(0.0, going.computes) / left + std::max(0.0, going.communication);
    if (going.work > 0 && takes > 0) going.speed = going.work / takes;
  }
  clock_.set_speed(worker, going.speed);
}

void ComputeSlowdown::compute(int player, int stream, const SegmentSteps& steps, const Step& step, Token done) {
  const auto s = static_cast<std::size_t>(stream);
  going_[s] = {.stretch = steps.stretches.data() + step.first_stretch,
               .end = steps.stretches.data() + step.end_stretch,
               .computes = step.computing,
               .communication = step.seconds - step.computing,
               .work = step.seconds,
               .since = clock_.now().value};
  pace(worker_of_[s], going_[s], left(player));
  clock_.compute(worker_of_[s], {step.seconds}, done);
}

void ComputeSlowdown::change(int player, int stream, double sm_share) {
  if (!disturbs_[static_cast<std::size_t>(stream)]) return;
  taken_[static_cast<std::size_t>(stream)] = sm_share;
  const PlayerInput::Player& who = input_.players[static_cast<std::size_t>(player)];
  const double now_left = left(player);
  for (std::int32_t i = who.first_stream; i < who.first_stream + who.streams; ++i) {
    const auto s = static_cast<std::size_t>(i);
    if (worker_of_[s] < 0) continue;
    go_on(going_[s]);
    pace(worker_of_[s], going_[s], now_left);
  }
}

}  // namespace foreshard::player
