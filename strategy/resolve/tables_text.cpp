#include "strategy/resolve/tables_text.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/base/count_text.h"
#include "core/base/units.h"

namespace foreshard {

namespace {

using Cells = std::vector<std::string>;

std::string number(double value) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.6g", value);
  return digits;
}

std::string percent(double share) { return number(100 * share) + " %"; }

const char* word(DenseKind kind) {
  static constexpr std::array words = {"tensor", "context", "data", "outer data"};
  return words[static_cast<std::size_t>(kind)];
}
const char* word(ExpertKind kind) {
  static constexpr std::array words = {"expert-tensor", "expert", "expert-data"};
  return words[static_cast<std::size_t>(kind)];
}
const char* word(Tensors tensors) { return kTensorsWords[static_cast<std::size_t>(tensors)]; }
const char* word(Purpose purpose) {
  static constexpr std::array words = {
      "sums of gradients", "gathers of parameters", "between operators", "between experts",  "sum of norms",
      "send forward",      "receive forward",       "send backward",     "receive backward", "to host memory",
      "from host memory",  "update on the host",    "to drives",         "from drives",      "updates beside the forward"};
  return words[static_cast<std::size_t>(purpose)];
}
const char* word(Space space) {
  static constexpr std::array words = {"device memory", "pinned host memory", "pageable host memory", "NVMe"};
  return words[static_cast<std::size_t>(space)];
}
const char* word(GradientSum::When when) {
  static constexpr std::array words = {"with each micro-batch", "with the last micro-batch", "after all backwards"};
  return words[static_cast<std::size_t>(when)];
}

std::string joined(const Cells& parts, const char* between) {
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : between) + part;
  return all;
}

std::string range(int first, int last) {
  return first == last ? std::to_string(first) : std::to_string(first) + "-" + std::to_string(last);
}

TextOfTable axes(const StrategyTables& tables) {
  TextOfTable out{.key = "axes", .title = "layout: axes, fastest first", .head = {"axis", "size", "dense grid", "expert grid"}};
  for (const AxisId id : tables.layout.fastest_first) {
    if (!id.valid()) {
      out.rows.push_back({"role", std::to_string(tables.schedule.ranks()), "-", "-"});
      continue;
    }
    const Axis& axis = tables.layout.axes[id.index()];
    out.rows.push_back({axis.name, std::to_string(axis.size), word(axis.dense), word(axis.expert)});
  }
  return out;
}

TextOfTable groups(const StrategyTables& tables) {
  TextOfTable out{.key = "groups", .title = "layout: groups", .head = {"group", "ranks along", "roles", "stream"}};
  const auto alone = [&](const LayoutGroup& group) {
    return std::ranges::none_of(tables.layout.axes, [&](const Axis& axis) { return is_of(axis, group.over); });
  };
  for (const LayoutGroup& group : tables.layout.groups) {
    const bool own = group.roles == LayoutGroup::Roles::Own;
    if (alone(group) && (own || tables.schedule.ranks() == 1)) continue;
    const char* roles = own ? "own" : group.roles == LayoutGroup::Roles::Tied ? "of the tied embedding" : "all";
    out.rows.push_back({group.name, to_text(group.over), roles, tables.communication.streams[group.stream.index()].name});
  }
  return out;
}

// "0F0 0F1 ... 3B7": the first and the last actions of a long list
std::string order_text(const std::vector<ScheduleOp>& order) {
  constexpr std::size_t kShown = 10;
  Cells words;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order.size() > kShown && i == kShown - 2) words.push_back("..."), i = order.size() - 2;
    words.push_back(to_text(order[i]));
  }
  return joined(words, " ");
}

TextOfTable schedule(const StrategyTables& tables) {
  TextOfTable out{.key = "schedule", .title = "schedule", .head = {"rank", "stages", "layers", "actions", "in order"}};
  for (int rank = 0; rank < tables.schedule.ranks(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    Cells stages, layers;
    for (const int stage : tables.schedule.stages_of_rank[at]) {
      const auto& first = tables.layout.layers.first;
      const int of_model = tables.schedule.model_stage(stage);
      stages.push_back(std::to_string(of_model));
      layers.push_back(range(first[static_cast<std::size_t>(of_model)], first[static_cast<std::size_t>(of_model) + 1] - 1));
    }
    const std::vector<ScheduleOp>& order = tables.schedule.order[at];
    out.rows.push_back({std::to_string(rank), joined(stages, ", "), joined(layers, ", "), std::to_string(std::ssize(order)),
                        order_text(order)});
  }
  return out;
}

std::string unit_text(const StateRow& row) {
  if (row.unit == Unit::Tensor) return "each by itself";
  if (row.unit == Unit::Layer) return "by layer";
  return row.bucket == Bytes{} ? "one bucket" : "buckets of " + in_size(row.bucket);
}

std::string chunks_text(const ChunkRule& chunks) {
  const std::string size = chunks.chunk > 0 ? "of " + count_text(chunks.chunk) + " elements" : "with the least padding";
  const std::string text = "when used, in chunks " + size + "; ";
  if (chunks.cap_ratio > 0)
    return text + "idle ones stay while the plan takes at most " + percent(chunks.cap_ratio) + " of the device";
  return text + (chunks.kept > 0 ? percent(chunks.kept) + " may stay idle" : "none stays idle");
}

std::string regions_text(const RegionRule& rule) {
  std::string ahead, on_demand;
  int kept = 0;
  for (int region = 0; region < static_cast<int>(rule.choices.size()); ++region) {
    const int by = rule.choices[static_cast<std::size_t>(region)].fetched_by;
    const std::string name = std::to_string(region);
    kept += by == RegionChoice::kKept ? 1 : 0;
    if (by == region) on_demand += (on_demand.empty() ? "" : ", ") + name;
    if (by > region) ahead += (ahead.empty() ? "" : ", ") + name + " with " + std::to_string(by);
  }
  if (rule.choices.empty()) return "one layer ahead, for its backward when that begins";
  return counted(std::ssize(rule.choices), "region") + ": " + std::to_string(kept) + " kept until the backward" +
         (ahead.empty() ? "" : "; fetched beside the backward of another: " + ahead) +
         (on_demand.empty() ? "" : "; fetched when their backward begins: " + on_demand);
}

std::string stays_text(const ParameterStays& stays) {
  if (const auto* modules = std::get_if<ModuleRule>(&stays.rule))
    return count_text(modules->prefetch) + " elements ahead up to " + count_text(modules->live_cap) +
           ", kept when used again within " + count_text(modules->reuse_distance);
  if (const auto* chunks = std::get_if<ChunkRule>(&stays.rule)) return chunks_text(*chunks);
  if (const auto* regions = std::get_if<RegionRule>(&stays.rule)) return regions_text(*regions);
  const auto& blocks = std::get<BlockRule>(stays.rule);
  const int ahead = blocks.ahead_backward;
  const std::string when = ahead > 0 ? counted(ahead, "layer") + " ahead" : std::string("when used");
  if (blocks.keep_after_forward) return when + ", kept until the backward";
  return when + ", " + counted(ahead + 1, "place") + (blocks.staging_in_forward ? ", copied out in the forward" : "");
}

std::string parameters_text(const StateRow& row) {
  const StateRow::Parameters& p = row.parameters;
  const bool away = p.home != Space::Device;
  if (row.brings_parameters())
    return (away ? std::string("in ") + word(p.home) + "; copied in" + (p.cut_by.empty() ? " " : " and gathered ")
                 : "gathered ") +
           stays_text(p.stays);
  if (!row.trained) return "only read";
  if (row.optimizer.cut_by.empty())
    return row.optimizer.updated_by == Processor::Device ? "updated in place" : "copied back after the update";
  return p.gathered_next_run ? "gathered beside the next forwards" : "gathered after the update";
}

// "4 bits in 8 segments, what is left out waits".
std::string coding_text(const Coding& coding) {
  const ops::CodeForm& form = coding.encode.form;
  std::string as;
  switch (form.code) {
    case ops::Code::Largest: as = "the largest " + number(coding.kept * 100) + " %"; break;
    case ops::Code::Signs: as = coding.of_moment ? "signs of moments" : "signs"; break;
    case ops::Code::EightBits: as = "8 bits"; break;
    case ops::Code::Floats: as = "fp8"; break;
    case ops::Code::Segments:
      as = std::to_string(form.bits) + " bits, " +
           (form.segments == 0 ? "a centre and two tails" : std::to_string(form.segments) + " segments");
      break;
  }
  return as + (coding.encode.feedback ? ", the rest waits" : "");
}

std::string sum_text(const StateRow& row, const GradientSum& sum) {
  if (sum.tied_stages) return std::string("all-reduce between the stages that hold it ") + word(sum.when);
  const bool scatters = !row.optimizer.cut_by.empty() && sum.over == row.optimizer.cut_by;
  return (scatters ? "reduce-scatter over " : "all-reduce over ") + to_text(sum.over) + " " + word(sum.when) +
         (!sum.coding         ? std::string()
          : sum.first.empty() ? ", as codes: " + coding_text(*sum.coding)
                              : ", as they are over " + to_text(sum.first) + ", then as codes: " + coding_text(*sum.coding));
}

// Leaves out sums over kinds of axes that the layout does not have.
std::string gradients_text(const StateRow& row, const std::vector<Axis>& axes) {
  Cells parts;
  for (const GradientSum& sum : row.gradients.sums)
    if (sum.tied_stages || std::ranges::any_of(axes, [&](const Axis& axis) { return is_of(axis, sum.over); }))
      parts.push_back(sum_text(row, sum));
  if (row.writes_gradients_to_slots())
    parts.push_back(row.gradients.slots == 0 ? "a place for each whole one"
                                             : counted(row.gradients.slots, "place") + " for whole ones");
  if (!row.gradients.kept) parts.push_back("until the update");
  if (row.gradients.home != Space::Device) parts.push_back(std::string("then in ") + word(row.gradients.home));
  return parts.empty() ? "not summed" : joined(parts, "; ");
}

std::string optimizer_text(const StateRow& row) {
  const StateRow::Optimizer& o = row.optimizer;
  Cells states;
  for (const auto& [there, name] : {std::pair{o.master, "master"}, {o.momentum, "momentum"}, {o.variance, "variance"}})
    if (there) states.emplace_back(name);
  std::string text = states.empty() ? "no states" : joined(states, ", ");
  if (o.home != Space::Device) text += std::string("; in ") + word(o.home);
  if (o.kept > 0) text += " but for " + number(o.kept * 100) + " %";
  if (o.with_backward) text += "; updated with the backward";
  if (o.beside_forward) text += "; updated beside the next forward";
  if (o.frozen_after > 0) text += "; the variance stays after " + counted(o.frozen_after, "step");
  if (o.updated_by == Processor::Host) text += "; updated by the processor of the host";
  return text;
}

TextOfTable state(const StrategyTables& tables) {
  TextOfTable out{.key = "state", .title = "state", .head = {"tensors", "unit", "state", "dtype", "cut over", "how"}};
  for (const StateRow& row : tables.state) {
    out.rows.push_back({word(row.tensors), unit_text(row), "parameters", name_of(row.parameters.dtype),
                        to_text(row.parameters.cut_by), parameters_text(row)});
    if (!row.trained) continue;
    out.rows.push_back({"", "", "gradients", name_of(row.gradients.dtype), to_text(row.gradients.cut_by),
                        gradients_text(row, tables.layout.axes)});
    out.rows.push_back({"", "", "optimizer", name_of(row.optimizer.dtype), to_text(row.optimizer.cut_by), optimizer_text(row)});
  }
  return out;
}

TextOfTable activations(const StrategyTables& tables) {
  const ActivationPolicy& policy = tables.activations;
  TextOfTable out{
      .key = "activations", .title = "activations", .head = {"layers", "made again in the backward", "what is kept"}};
  const auto kept = [](const ActivationRow& row) -> std::string {
    if (row.home == Space::Device) return "stays";
    return std::string(row.inputs_only ? "its input" : "all") + " in " + word(row.home);
  };
  for (const ActivationRow& row : policy.rows) {
    Cells ranges;
    for (const LayerRange& layers : row.layers) ranges.push_back(range(layers.first, layers.last));
    const std::string whole =
        std::string("the whole layer, from its input") + (row.redone.stops ? ", to the last value that is read" : "");
    const std::string again = row.redone.whole             ? whole
                              : row.redone.modules.empty() ? "nothing"
                                                           : joined(row.redone.modules, ", ");
    out.rows.push_back({joined(ranges, ", "), again, kept(row)});
  }
  for (std::size_t stage = 0; stage < policy.runs_of_stage.size(); ++stage) {
    const StageRuns& runs = policy.runs_of_stage[stage];
    const auto behind = runs.runs.begin() + runs.turn;
    const auto again = std::count_if(behind, runs.runs.end(), [](const OpRun& run) { return !run.backward; });
    out.rows.push_back(
        {"of stage " + std::to_string(static_cast<std::int64_t>(stage)),
         counted(again, "operator") + " of " + std::to_string(runs.turn) + ", in the order of a recomputation schedule",
         "stays"});
  }
  return out;
}

std::string algorithm_text(const CommunicationRow& row) {
  return std::string(row.algorithm ? name_of(*row.algorithm) : "auto") +
         (row.coding ? ", as codes: " + coding_text(*row.coding) : "") +
         (row.dispatch ? ", rows to experts as codes: " + coding_text(*row.dispatch) : "");
}

TextOfTable communication(const StrategyTables& tables) {
  TextOfTable out{.key = "communication",
                  .title = "communication",
                  .head = {"purpose", "chunk", "stream", "algorithm", "computes meanwhile"}};
  for (const CommunicationRow& row : tables.communication.rows) {
    const bool transfer = row.purpose >= Purpose::SendForward;
    out.rows.push_back({word(row.purpose) + (row.cut_by.empty() ? "" : ", in parts over " + to_text(row.cut_by)),
                        row.chunk < 0 ? "any" : std::to_string(row.chunk),
                        tables.communication.streams[row.stream.index()].name, transfer ? "-" : algorithm_text(row),
                        row.stream.value == 0 || !row.overlaps ? "no" : "yes"});
    if (row.purpose != Purpose::Operator || tables.communication.parts.empty()) continue;
    Cells layers;
    for (const PartsRow& of : tables.communication.parts) {
      Cells parts;
      for (const int n : of.counts) parts.push_back(std::to_string(n));
      const bool all = tables.communication.parts.size() == 1;
      layers.push_back(joined(parts, " and ") + " parts" +
                       (all ? "" : " (layers " + range(of.layers.first, of.layers.last) + ")"));
    }
    out.rows.back()[0] += ", in " + joined(layers, ", ");
  }
  return out;
}

TextOfTable update(const StrategyTables& tables) {
  const Update& u = tables.update;
  TextOfTable out{.key = "update", .title = "update", .head = {"what", "how"}};
  out.rows.push_back({"optimizer", name_of(u.optimizer)});
  if (u.optimizer == OptimizerKind::Sgd) out.rows.push_back({"momentum", number(u.momentum)});
  out.rows.push_back({"begins", u.measures()           ? "with the norm of all gradients"
                                : u.waits_for_all_sums ? "when all gradients are summed"
                                                       : "unit by unit, as each is summed"});
  if (u.clips()) out.rows.push_back({"clips", "to a global norm of " + number(u.clip_norm)});
  if (u.scales_dynamically) out.rows.push_back({"loss scale", "follows overflows"});
  if (u.delay_annealing > 0) {
    Cells delays;
    for (const int delay : tables.schedule.delays) delays.push_back(std::to_string(std::max(delay, 1)));
    out.rows.push_back({"learning rate", "divided by the delay of the stage, " + joined(delays, ", ") +
                                             ", less and less over " + counted(u.delay_annealing, "update")});
  }
  return out;
}

static const char* keys_of(ContextKind context) {
  switch (context) {
    case ContextKind::AllGather: return "gathered over context";
    case ContextKind::Ring: return "go round the context ranks";
    case ContextKind::AllToAll: return "of all positions, heads dealt out over context";
  }
  return "";
}

TextOfTable shapes(const StrategyTables& tables) {
  const Sharding& of = tables.sharding;
  TextOfTable out{.key = "shapes", .title = "shapes", .head = {"what", "is"}};
  out.rows.push_back({"samples of a micro-batch", std::to_string(of.micro_batch)});
  out.rows.push_back({"tokens of a sample", std::to_string(of.seq)});
  out.rows.push_back({"compute type", name_of(of.compute)});
  if (of.factors) out.rows.push_back({"factors of linear layers", std::string(name_of(*of.factors)) + ", but of the head"});
  if (of.tp > 1)
    out.rows.push_back({"tokens between tensor-parallel layers", of.sequence_parallel ? "cut over tensor" : "whole"});
  if (of.cp > 1) out.rows.push_back({"keys and values", keys_of(of.context)});
  out.rows.push_back({"attention", of.flash_attention ? "flash" : "unfused"});
  if (of.kept_tokens > 0) out.rows.push_back({"tokens whose rows are summed", number(of.kept_tokens * 100) + " %"});
  out.rows.push_back({"dropout", number(of.dropout)});
  out.rows.push_back({"vocabulary", "a multiple of " + std::to_string(of.vocab_multiple * of.tp)});
  return out;
}

}  // namespace

std::string to_text(const Kinds& kinds) {
  Cells words;
  for (const AxisKind& kind : kinds) std::visit([&](auto one) { words.emplace_back(word(one)); }, kind);
  return words.empty() ? "-" : joined(words, ", ");
}

TextOfTable moves_text(const StrategyTables& tables, const OpGraph& graph) {
  TextOfTable out{.key = "moves",
                  .title = "activations that move by themselves",
                  .head = {"layer", "value", "goes to", "gone after the forward of", "comes back from the backward of"}};
  const auto kind = [&](int layer) -> const LayerGraph& {
    return graph.kinds[static_cast<std::size_t>(graph.layers[static_cast<std::size_t>(layer)].kind)];
  };
  const auto op = [&](ValueMove::At at) {
    return graph.layers[static_cast<std::size_t>(at.layer)].name + "." +
           kind(at.layer).operators[static_cast<std::size_t>(at.op)].name;
  };
  for (const ValueMove& move : tables.activations.moves)
    out.rows.push_back({graph.layers[static_cast<std::size_t>(move.layer)].name,
                        kind(move.layer).values[static_cast<std::size_t>(move.value)].name, word(move.home), op(move.leaves),
                        op(move.returns) + (move.computes_wait_back ? ", which waits for it" : "")});
  return out;
}

std::vector<TextOfTable> texts_of(const StrategyTables& tables) {
  std::vector<TextOfTable> all = {axes(tables),        groups(tables),        schedule(tables), state(tables),
                                  activations(tables), communication(tables), update(tables),   shapes(tables)};
  std::erase_if(all, [](const TextOfTable& table) { return table.rows.empty(); });
  return all;
}

}  // namespace foreshard
