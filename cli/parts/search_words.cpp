#include "cli/parts/search_words.h"

#include <algorithm>

#include "cli/parts/search_output.h"
#include "core/strategy/strategy_options.h"
#include "strategy/schedule/schedule.h"

namespace foreshard {

std::string zero_text(const Point& point) {
  return std::to_string(point.zero) + (point.zero > 0 && point.zero_group > 0 ? ":" + std::to_string(point.zero_group) : "") +
         (point.zero > 0 && point.overlap_parameters ? "+" : "");
}
std::string order_text(const Candidate& candidate) {
  RankOrder order = candidate.strategy.placement;
  std::erase(order, DenseKind::OuterData);
  return to_text(order);
}

// A choice per layer is a list too long for a table.
std::string recompute_word(const Candidate& candidate) {
  const Recompute& recompute = candidate.strategy.recompute;
  return candidate.point.recompute == RecomputeKind::Each && !recompute.each.empty() ? "best" : to_text(recompute);
}

std::string degree_text(const Candidate& candidate, int of_all, int StageDegrees::*degree) {
  const std::vector<StageDegrees>& stages = candidate.strategy.stages;
  if (stages.empty()) return std::to_string(of_all);
  const auto [least, most] = std::ranges::minmax_element(stages, {}, degree);
  return std::to_string((*least).*degree) + ((*least).*degree < (*most).*degree ? ".." + std::to_string((*most).*degree) : "");
}
std::string stages_text(const Candidate& candidate) {
  return candidate.strategy.stages.empty() ? std::to_string(candidate.point.pp)
                                           : std::to_string(std::ssize(candidate.strategy.stages));
}

// Without cells one stage has only one order.
std::string schedule_word(const Candidate& candidate) {
  const ScheduleEntry& entry = schedule_entry(candidate.point.schedule);
  return candidate.strategy.stages.empty() && candidate.point.pp == 1 && !entry.cells ? "-" : entry.name;
}

std::string in_host_memory(const OffloadChoice& offload) {
  std::string away;
  for (const auto& [is, what] : {std::pair{offload.optimizer != Space::Device, "states"},
                                 {offload.parameters != Space::Device, "parameters"},
                                 {offload.gradients != Space::Device, "gradients"},
                                 {offload.activations != OffloadedActivations::None, "activations"}})
    if (is) away += (away.empty() ? "" : ", ") + std::string(what);
  return away;
}

std::string tried_text(const Strategy& strategy) {
  std::string text;
  for (const TriedOption& tried : tried_options()) {
    const StrategyOption& option = *find_option(tried.path);
    const std::string value = option.get(strategy);
    if (value != option.get(Strategy{})) text += (text.empty() ? "" : ", ") + tried.path + " " + value;
  }
  return text;
}

void add_column(TextTable& table, const std::vector<Candidate>& candidates, const std::string& head,
                const std::function<std::string(const Candidate&)>& text) {
  if (std::ranges::all_of(candidates, [&](const Candidate& c) { return text(c).empty(); })) return;
  table.columns.push_back({head, Align::Left});
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::string words = text(candidates[i]);
    table.rows[i].push_back(words.empty() ? "-" : words);
  }
}

std::string short_name(const Candidate& candidate) {
  const Point& p = candidate.point;
  const bool staged = !candidate.strategy.stages.empty();
  std::string name = staged ? "stages " + to_text(candidate.strategy.stages)
                            : "tp " + std::to_string(p.tp) + (p.cp > 1 ? ", cp " + std::to_string(p.cp) : "") + ", pp " +
                                  std::to_string(p.pp) + ", dp " + std::to_string(p.dp) +
                                  (p.ep > 1 ? ", ep " + std::to_string(p.ep) : "") +
                                  (p.etp > 1 ? ", etp " + std::to_string(p.etp) : "");
  if (p.virtual_stages > 1) name += ", " + std::to_string(p.virtual_stages) + " virtual stages";
  name += ", micro-batch " + std::to_string(p.micro_batch);
  if (schedule_word(candidate) != "-") name += ", " + schedule_word(candidate);
  if (p.sequence_parallel) name += ", sequence parallel";
  if (p.zero > 0) name += ", zero " + std::to_string(p.zero) + (p.overlap_parameters ? "+" : "");
  if (p.zero > 0 && p.zero_group > 0) name += " in groups of " + std::to_string(p.zero_group);
  if (!staged && !candidate.strategy.pipeline.layer_split.empty())
    name += ", layers " + candidate.strategy.pipeline.layer_split;
  if (candidate.strategy.recompute.kind != RecomputeKind::None) name += ", recompute " + recompute_word(candidate);
  if (p.overlap_tensor && p.ep > 1) name += ", all-to-alls of experts overlapped";
  if (candidate.strategy.pipeline.delay_wgrad) name += ", weight gradients delayed";
  if (!p.overlap_gradients && (staged || p.dp * p.cp > 1)) name += ", gradients not overlapped";
  if (!p.overlap_p2p && (staged || p.pp > 1)) name += ", transfers not overlapped";
  if (const std::string away = in_host_memory(candidate.strategy.offload); !away.empty()) name += ", in host memory " + away;
  if (const std::string tried = tried_text(candidate.strategy); !tried.empty()) name += ", " + tried;
  if (p.order > 0) name += ", ranks in the order " + order_text(candidate);
  return name;
}

std::string experts_text(const Point& point) {
  return std::to_string(point.ep) + (point.etp > 1 ? "x" + std::to_string(point.etp) : "");
}

std::string failed_text(const SearchResult& result) {
  std::int64_t count = 0;
  for (const FailedCandidate& failed : result.failed) count += failed.candidates;
  return count == 0 ? "" : "; " + count_text(count) + " failed by an internal error";
}

}  // namespace foreshard
