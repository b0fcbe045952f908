#include <algorithm>

#include "core/base/count_text.h"
#include "strategy/schedule/schedule.h"

namespace foreshard {

static char letter_of(Work work) {
  switch (work) {
    case Work::F: return 'F';
    case Work::B: return 'B';
    case Work::I: return 'I';
    case Work::W: return 'W';
    case Work::Update: return 'U';
  }
  return '?';
}

std::string to_text(const ScheduleOp& op) {
  return std::to_string(op.stage) + letter_of(op.work) + std::to_string(op.microbatch);
}

std::string to_text(const ScheduleLists& lists) {
  std::string text;
  for (const auto& list : lists) {
    for (std::size_t k = 0; k < list.size(); ++k) text += (k == 0 ? "" : list[k - 1].with_next ? "&" : " ") + to_text(list[k]);
    text += '\n';
  }
  return text;
}

// Counts the actions of each (stage, micro-batch), and checks the counts.
struct Tally {
  int f = 0, b = 0, i = 0, w = 0;
};
static std::optional<std::string> wrong_count(const std::vector<Tally>& tallies, std::size_t microbatches) {
  for (std::size_t k = 0; k < tallies.size(); ++k) {
    const Tally& t = tallies[k];
    if (t.f == 1 && ((t.b == 1 && t.i == 0 && t.w == 0) || (t.b == 0 && t.i == 1 && t.w == 1))) continue;
    return "stage " + std::to_string(k / microbatches) + ", micro-batch " + std::to_string(k % microbatches) + ": found " +
           std::to_string(t.f) + " F, " + std::to_string(t.b) + " B, " + std::to_string(t.i) + " I, " + std::to_string(t.w) +
           " W, expected one F and either one B or one I and one W";
  }
  return {};
}

std::optional<std::string> incomplete(const ScheduleLists& lists) {
  std::size_t stages = 0, microbatches = 0, actions = 0;
  for (const auto& list : lists) {
    actions += list.size();
    for (const ScheduleOp& op : list) {
      if (op.stage < 0 || op.microbatch < 0) return to_text(op) + ": found a negative number";
      if (op.work == Work::Update) return to_text(op) + ": found an update, expected F, B, I or W";
      stages = std::max(stages, static_cast<std::size_t>(op.stage) + 1);
      microbatches = std::max(microbatches, static_cast<std::size_t>(op.microbatch) + 1);
    }
  }
  if (stages * microbatches * 2 > actions)  // also keeps the tables below as small as the lists
    return "found " + std::to_string(actions) + " actions, expected at least 2 for each of " + counted(stages, "stage") +
           " and " + counted(microbatches, "micro-batch", "micro-batches");
  std::vector<Tally> tallies(stages * microbatches);
  std::vector<std::size_t> rank_of(stages, lists.size());
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    for (const ScheduleOp& op : lists[rank]) {
      std::size_t& home = rank_of[static_cast<std::size_t>(op.stage)];
      if (home != lists.size() && home != rank)
        return "stage " + std::to_string(op.stage) + ": found on ranks " + std::to_string(home) + " and " +
               std::to_string(rank) + ", expected one rank per stage";
      home = rank;
      Tally& t = tallies[static_cast<std::size_t>(op.stage) * microbatches + static_cast<std::size_t>(op.microbatch)];
      ++(op.work == Work::F ? t.f : op.work == Work::B ? t.b : op.work == Work::I ? t.i : t.w);
    }
  }
  return wrong_count(tallies, microbatches);
}

}  // namespace foreshard
