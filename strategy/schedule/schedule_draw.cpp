// One row per rank, one cell per action, to scale. A forward cell is its micro-batch and '>', a backward cell its
// micro-batch and '<', a weight gradient ends in 'w', a dot is idle time:
//   r0  0>1>2>3>..................0<<<4>1<<<5>
//   r1  ..0>1>2>............0<<<3>1<<<4>2<<<5>
#include <algorithm>
#include <cmath>
#include <utility>

#include "strategy/schedule/schedule.h"

namespace foreshard {

namespace {

struct Scale {
  double columns_per_second = 1;
  bool labels = false;      // a forward cell has room for a micro-batch number
  bool last_digit = false;  // ... but only for its last digit
  bool chunks = false;      // and for the letter of the chunk
};

int digits_of(int n) { return static_cast<int>(std::to_string(n).size()); }

// The actions of a cell are drawn one after the other, with equal widths.
std::pair<double, double> drawn(const std::vector<ScheduleOp>& list, const ScheduleTiming<double>& timing, std::size_t rank,
                                std::size_t k) {
  const double begin = timing.begin[rank][k], end = timing.end[rank][k];
  std::size_t first = k, last = k;
  while (first > 0 && list[first - 1].with_next) --first;
  while (list[last].with_next) ++last;
  const double part = (end - begin) / static_cast<double>(last + 1 - first);
  return {begin + part * static_cast<double>(k - first), k == last ? end : begin + part * static_cast<double>(k + 1 - first)};
}

double shortest_action(const ScheduleLists& lists, const ScheduleTiming<double>& timing) {
  double shortest = timing.makespan;
  for (std::size_t rank = 0; rank < timing.begin.size(); ++rank)
    for (std::size_t k = 0; k < timing.begin[rank].size(); ++k) {
      const auto [begin, end] = drawn(lists[rank], timing, rank, k);
      const double duration = end - begin;
      if (duration > 0) shortest = std::min(shortest, duration);
    }
  return shortest;
}

// A whole number of columns for the shortest action when there is room for that, so that equal actions look equal.
Scale choose_scale(const ScheduleLists& lists, const ScheduleTiming<double>& timing, int width) {
  int microbatches = 1;
  std::size_t chunks = 1;
  for (const auto& list : lists) {
    std::vector<std::int32_t> stages;
    for (const ScheduleOp& op : list) {
      microbatches = std::max(microbatches, op.microbatch + 1);
      if (std::find(stages.begin(), stages.end(), op.stage) == stages.end()) stages.push_back(op.stage);
    }
    chunks = std::max(chunks, stages.size());
  }
  const double shortest = shortest_action(lists, timing);
  const double room = timing.makespan > 0 ? width * (shortest / timing.makespan) : 1;
  const int digits = digits_of(microbatches - 1);
  const double whole = std::min(std::floor(room + 1e-9), digits + 3.0);
  Scale scale;
  scale.columns_per_second = timing.makespan > 0 ? (whole >= 1 ? whole / shortest : width / timing.makespan) : 1;
  scale.labels = whole >= 1;
  scale.chunks = chunks > 1 && whole >= digits + 1;
  scale.last_digit = whole <= digits && digits > 1;  // without a fill character numbers would run together
  return scale;
}

std::string cell_text(const ScheduleOp& op, int chunk, int width, const Scale& scale) {
  const char fill = op.work == Work::F ? '>' : op.work == Work::W ? 'w' : '<';
  std::string text;
  if (scale.labels) {
    text = std::to_string(scale.last_digit ? op.microbatch % 10 : op.microbatch);
    if (scale.chunks) text += static_cast<char>('a' + chunk % 26);
  }
  const int room = op.work == Work::F ? width : width - 1;  // a backward is never taken for a forward
  if (static_cast<int>(text.size()) > room) text.clear();
  text.resize(static_cast<std::size_t>(width), fill);
  return text;
}

std::string row_of(const std::vector<ScheduleOp>& list, const ScheduleTiming<double>& timing, std::size_t rank,
                   const Scale& scale) {
  const auto column = [&](double time) { return static_cast<int>(std::lround(time * scale.columns_per_second)); };
  std::vector<std::int32_t> stages;
  for (const ScheduleOp& op : list)
    if (std::find(stages.begin(), stages.end(), op.stage) == stages.end()) stages.push_back(op.stage);
  std::sort(stages.begin(), stages.end());
  std::string row(static_cast<std::size_t>(column(timing.makespan)), '.');
  for (std::size_t k = 0; k < list.size(); ++k) {
    const auto [begin, end] = drawn(list, timing, rank, k);
    const int from = column(begin), to = column(end);
    if (to <= from) continue;
    const auto chunk = std::lower_bound(stages.begin(), stages.end(), list[k].stage) - stages.begin();
    row.replace(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from),
                cell_text(list[k], static_cast<int>(chunk), to - from, scale));
  }
  return row;
}

std::string legend(const ScheduleLists& lists, const Scale& scale) {
  bool split = false;
  for (const auto& list : lists)
    for (const ScheduleOp& op : list) split |= op.work == Work::W;
  std::string text = split ? "> forward  < input gradient  w weight gradient  . idle" : "> forward  < backward  . idle";
  if (scale.labels) text += scale.last_digit ? "  number: last digit of the micro-batch" : "  number: micro-batch";
  if (scale.chunks) text += "  letter: chunk";
  return text;
}

}  // namespace

std::string draw(const ScheduleLists& lists, const ScheduleTiming<double>& timing, int columns) {
  FS_ASSERT(timing.begin.size() == lists.size());
  const int label = digits_of(static_cast<int>(lists.size()) - 1) + 3;  // "r12  "
  const Scale scale = choose_scale(lists, timing, std::max(columns, 40) - label);
  std::string picture;
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    std::string name = "r" + std::to_string(rank);
    name.resize(static_cast<std::size_t>(label), ' ');
    picture += name + row_of(lists[rank], timing, rank, scale) + "\n";
  }
  return picture + legend(lists, scale) + "\n";
}

}  // namespace foreshard
