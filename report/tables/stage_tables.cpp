#include "report/tables/stage_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "report/tables/summary_text.h"

namespace foreshard {

std::string words_of(BubbleCause cause) {
  switch (cause) {
    case BubbleCause::WarmUp: return "warm-up";
    case BubbleCause::Drain: return "drain";
    case BubbleCause::Dependency: return "dependency";
    case BubbleCause::ExposedCommunication: return "exposed communication";
    case BubbleCause::Straggler: return "straggler";
    case BubbleCause::Barrier: return "barrier";
    case BubbleCause::Imbalance: return "expert imbalance";
  }
  return "?";
}

std::string range_name(const std::string& first, const std::string& last) {
  if (first == last) return first;
  const auto digits = [](const std::string& name) {
    std::size_t from = name.size();
    while (from > 0 && name[from - 1] >= '0' && name[from - 1] <= '9') --from;
    return from;
  };
  const std::size_t a = digits(first), b = digits(last);
  if (a == first.size() || b == last.size() || first.substr(0, a) != last.substr(0, b)) return first + " .. " + last;
  return first + "-" + last.substr(b);
}

namespace {

struct Run {
  std::size_t first = 0, last = 0;
};  // rows first..last are printed as one

// Joins neighbours with equal cells into runs. Of more than `most` runs it drops the middle ones, except `keep`; an empty run
// marks their place.
std::vector<Run> fold(const std::vector<std::vector<std::string>>& cells, int most, std::size_t keep) {
  std::vector<Run> runs;
  for (std::size_t r = 0; r < cells.size(); ++r) {
    if (!runs.empty() && cells[runs.back().first] == cells[r])
      runs.back().last = r;
    else
      runs.push_back({r, r});
  }
  if (static_cast<int>(runs.size()) <= most) return runs;
  const std::size_t head = static_cast<std::size_t>(most) / 2, tail = static_cast<std::size_t>(most) - head - 2;
  std::vector<Run> kept;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const bool shown = i < head || i + tail >= runs.size() || (runs[i].first <= keep && keep <= runs[i].last);
    if (shown)
      kept.push_back(runs[i]);
    else if (kept.back().first <= kept.back().last)
      kept.push_back({1, 0});
  }
  return kept;
}

std::string share_range(const std::vector<double>& shares, Run run) {
  double least = 1, most = 0;
  for (std::size_t r = run.first; r <= run.last; ++r) least = std::min(least, shares[r]), most = std::max(most, shares[r]);
  const std::string low = fmt::format("{:.1f}", least * 100), high = fmt::format("{:.1f}", most * 100);
  return (low == high ? low : low + "-" + high) + " %";
}

std::string short_word(BubbleCause cause) {
  if (cause == BubbleCause::ExposedCommunication) return "comm.";
  if (cause == BubbleCause::Dependency) return "depend.";
  return cause == BubbleCause::Imbalance ? "imbalance" : words_of(cause);
}

// The two causes with the largest shares, each the mean over the rows of the run.
std::string mostly(const Summary& summary, Run run) {
  std::array<double, kBubbleCauses> shares = {};
  std::array<std::size_t, kBubbleCauses> order = {};
  std::iota(order.begin(), order.end(), 0U);
  for (std::size_t r = run.first; r <= run.last; ++r)
    for (std::size_t c = 0; c < shares.size(); ++c)
      shares[c] += summary.bubble.by_cause_per_stage[r][c] / static_cast<double>(run.last - run.first + 1);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
  std::string text;
  for (const std::size_t c : {order[0], order[1]})
    if (shares[c] >= 0.0005)
      text += fmt::format("{}{} {:.1f}", text.empty() ? "" : ", ", short_word(static_cast<BubbleCause>(c)), shares[c] * 100);
  return text;
}

}  // namespace

TextTable stage_table(const Summary& summary, int most_rows) {
  const std::size_t stages = summary.stage_times.size();
  const bool one_each = stages == summary.bubble.per_stage.size() && stages == summary.bubble.by_cause_per_stage.size();
  TextTable table{.columns = {{"", Align::Left}, {"forward"}, {"backward"}, {"weight grads"}, {"transfer"}}};
  if (one_each) table.columns.insert(table.columns.end(), {{"bubble"}, {"main causes, %", Align::Left}});
  std::vector<std::vector<std::string>> cells;
  for (const StageTimes& times : summary.stage_times)
    cells.push_back({in_short_time(times.forward), in_short_time(times.backward_input + times.backward_weight),
                     in_short_time(times.backward_weight), in_short_time(times.p2p)});
  const auto stage = [](std::size_t s) { return "stage " + std::to_string(s); };
  for (const Run run : fold(cells, most_rows, 0)) {
    if (run.first > run.last) {
      table.rows.push_back({"..."});
      continue;
    }
    std::vector<std::string> row = {range_name(stage(run.first), stage(run.last))};
    row.insert(row.end(), cells[run.first].begin(), cells[run.first].end());
    if (one_each) row.insert(row.end(), {share_range(summary.bubble.per_stage, run), mostly(summary, run)});
    table.rows.push_back(std::move(row));
  }
  return table;
}

TextTable rank_table(const Summary& summary, int most_rows) {
  TextTable table{.columns = {{"", Align::Left}, {"bubble"}, {"main causes, %", Align::Left}}};
  const std::size_t ranks = summary.bubble.per_stage.size();
  if (ranks == summary.stage_times.size() || ranks != summary.bubble.by_cause_per_stage.size() ||
      ranks != summary.memory.size())
    return table;
  std::vector<std::vector<std::string>> cells;
  for (std::size_t r = 0; r < ranks; ++r)
    cells.push_back({share_range(summary.bubble.per_stage, {r, r}), mostly(summary, {r, r})});
  for (const Run run : fold(cells, most_rows, 0)) {
    if (run.first > run.last)
      table.rows.push_back({"..."});
    else
      table.rows.push_back({range_name(summary.memory[run.first].role, summary.memory[run.last].role), cells[run.first][0],
                            cells[run.first][1]});
  }
  return table;
}

TextTable memory_table(const Summary& summary, int most_rows) {
  TextTable table{.columns = {{"", Align::Left}, {"params"}, {"grads"}, {"optim"}, {"activ"}, {"scratch"}, {"comm"}, {"live"}}};
  // A summary without order bounds leaves their column out.
  const bool bounded = std::ranges::any_of(summary.memory, [](const StageMemory& row) { return row.order_bound > Bytes{}; });
  if (bounded) table.columns.push_back({"bound"});
  table.columns.insert(table.columns.end(), {{"arena"}, {"total"}, {"margin"}});
  std::vector<std::vector<std::string>> cells;
  std::size_t tightest = 0;
  for (const StageMemory& row : summary.memory) {
    if (row.with_framework > summary.memory[tightest].with_framework) tightest = cells.size();
    std::vector<std::string>& line = cells.emplace_back();
    const bool played = row.live_peak > Bytes{};
    for (const Category category : {Category::Parameters, Category::Gradients, Category::Optimizer, Category::Activations,
                                    Category::Transient, Category::Communication})
      line.push_back(played ? in_gib_text(row.peak[static_cast<std::size_t>(category)]) : "-");
    line.push_back(played ? in_gib_text(row.live_peak) : "-");
    if (bounded) line.push_back(in_gib_text(row.order_bound));
    for (const Bytes bytes : {row.arena, row.with_framework, summary.fit.capacity - summary.fit.reserve - row.with_framework})
      line.push_back(in_gib_text(bytes));
  }
  for (const Run run : fold(cells, most_rows, tightest)) {
    if (run.first > run.last) {
      table.rows.push_back({"..."});
      continue;
    }
    std::vector<std::string> row = {range_name(summary.memory[run.first].role, summary.memory[run.last].role)};
    row.insert(row.end(), cells[run.first].begin(), cells[run.first].end());
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace foreshard
