#include "strategy/partition/fine_parts.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

#include "core/base/at.h"
#include "core/base/error.h"

namespace foreshard {

namespace {

struct State {
  double compute_free = 0;
  std::vector<double> ends = {};  // [part of the last operation]: end of its communication; empty: no operation yet
  int choice = -1, before = -1;   // index of the last operation's number of parts; index of the state before that operation

  double last() const { return ends.empty() ? 0 : ends.back(); }
};

State step(const State& before, const FineOperation& operation, int n) {
  State state{.compute_free = before.compute_free};
  const auto previous = static_cast<int>(before.ends.size());
  double communication_free = before.last();
  for (int k = 1; k <= n; ++k) {
    const double ready = previous == 0 ? 0 : before.ends[at((k * previous + n - 1) / n) - 1];
    state.compute_free = std::max(state.compute_free, ready) + operation.overhead + operation.compute / n;
    communication_free = std::max(communication_free, state.compute_free) + operation.latency + operation.communication / n;
    state.ends.push_back(communication_free);
  }
  return state;
}

// By which time states are compared. Which of them leads to the best end depends on whether compute or communication dominates later.
enum class By : std::uint8_t { End, Compute, Both };
double time_of(const State& state, By by) {
  switch (by) {
    case By::End: return state.last();
    case By::Compute: return state.compute_free;
    case By::Both: return state.last() + state.compute_free;
  }
  return 0;
}

bool earlier(const State& a, const State& b, By by) {
  const auto key = [&](const State& state) { return std::tuple(time_of(state, by), state.last(), state.compute_free); };
  return key(a) < key(b) || (key(a) == key(b) && a.ends < b.ends);
}

// Whether no time of `a` is later than that of `b`, for states with equal numbers of parts. Then no continuation of `a` is later either.
bool dominates(const State& a, const State& b) {
  if (a.compute_free > b.compute_free) return false;
  for (std::size_t k = 0; k < a.ends.size(); ++k)
    if (a.ends[k] > b.ends[k]) return false;
  return true;
}

// Adds `next` to `states`. With `by`, keeps only the earliest state; without, all states that no other one dominates.
void keep(std::vector<State>& states, State next, std::optional<By> by) {
  if (by) {
    if (states.empty()) return states.push_back(std::move(next));
    if (earlier(next, states.front(), *by)) states.front() = std::move(next);
    return;
  }
  if (std::ranges::any_of(states, [&](const State& known) { return dominates(known, next); })) return;
  std::erase_if(states, [&](const State& known) { return dominates(next, known); });
  states.push_back(std::move(next));
}

FineParts search_states(const std::vector<FineOperation>& operations, const std::vector<int>& allowed, std::optional<By> by) {
  FineParts plan;
  // [operation][state]: the states for all numbers of parts in one list, so a state's `before` is an index into the list before.
  std::vector<std::vector<State>> reached = {{State{}}};
  for (const FineOperation& operation : operations) {
    std::vector<State> all;
    for (std::size_t choice = 0; choice < allowed.size(); ++choice) {
      const int n = allowed[choice];
      std::vector<State> kept;
      for (std::size_t before = 0; before < reached.back().size(); ++before) {
        State next = step(reached.back()[before], operation, n);
        next.choice = static_cast<int>(choice), next.before = static_cast<int>(before);
        plan.steps += n;
        keep(kept, std::move(next), by);
      }
      plan.most_states = std::max(plan.most_states, static_cast<std::int64_t>(kept.size()));
      std::ranges::move(kept, std::back_inserter(all));
    }
    reached.push_back(std::move(all));
  }
  const auto best =
      std::ranges::min_element(reached.back(), [](const State& a, const State& b) { return earlier(a, b, By::End); });
  plan.seconds = best->last();
  plan.parts.resize(operations.size());
  auto index = static_cast<int>(best - reached.back().begin());
  for (std::size_t l = operations.size(); l-- > 0;) {
    const State& state = reached[l + 1][at(index)];
    plan.parts[l] = allowed[at(state.choice)];
    index = state.before;
  }
  return plan;
}

}  // namespace

double fine_seconds(const std::vector<FineOperation>& operations, const std::vector<int>& parts) {
  FS_ASSERT(operations.size() == parts.size());
  State state;
  for (std::size_t l = 0; l < operations.size(); ++l) state = step(state, operations[l], parts[l]);
  return state.last();
}

FineParts plan_fine_parts(const std::vector<FineOperation>& operations, const std::vector<int>& allowed, FineSearch search) {
  FS_ASSERT(!allowed.empty() && std::ranges::all_of(allowed, [](int n) { return n >= 1; }));
  if (search == FineSearch::Pareto) return search_states(operations, allowed, {});
  FineParts best;
  for (const By by : {By::End, By::Compute, By::Both}) {
    FineParts next = search_states(operations, allowed, by);
    next.steps += best.steps;
    if (by != By::End && next.seconds >= best.seconds)
      best.steps = next.steps;
    else
      best = std::move(next);
  }
  return best;
}

}  // namespace foreshard
