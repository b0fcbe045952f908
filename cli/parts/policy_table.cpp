#include "cli/parts/policy_table.h"

#include <algorithm>

#include "core/json/json.h"
#include "report/words/text_table.h"

namespace foreshard {

namespace {

bool is_parameter_gather(const Instruction& run, const Role& role) {
  const auto* collective = std::get_if<Collective>(&run.what);
  return collective && collective->kind == CollectiveKind::AllGather && !run.writes.empty() &&
         role.buffers[run.writes.front().buffer.index()].category == Category::Parameters;
}

bool leaves_device(const Instruction& run, const Role& role) {
  const StreamKind kind = role.streams[run.stream.index()].kind;
  return std::holds_alternative<Copy>(run.what) &&
         (kind == StreamKind::CopyIn || kind == StreamKind::CopyOut || kind == StreamKind::Storage);
}

Bytes live_peak(const Summary& summary) {
  Bytes most = {};
  for (const StageMemory& memory : summary.memory) most = std::max(most, memory.live_peak);
  return most;
}

Bytes arena(const Summary& summary) {
  Bytes most = {};
  for (const StageMemory& memory : summary.memory) most = std::max(most, memory.arena);
  return most;
}

}  // namespace

PolicyTraffic policy_traffic(const Plan& plan) {
  PolicyTraffic most;
  for (const Role& role : plan.roles) {
    PolicyTraffic own;
    for (const Action& action : role.actions)
      for (const Instruction& run : plan.segments[action.segment.index()].instructions) {
        if (is_parameter_gather(run, role)) own.gathered += std::get<Collective>(run.what).bytes;
        if (leaves_device(run, role)) own.copied += std::get<Copy>(run.what).bytes;
      }
    most.gathered = std::max(most.gathered, own.gathered);
    most.copied = std::max(most.copied, own.copied);
  }
  return most;
}

std::string policy_table_text(const std::vector<PolicyRow>& rows, bool counts_tokens, bool unicode) {
  TextTable table{.columns = {{"policy", Align::Left},
                              {"of", Align::Left},
                              {"peak GiB"},
                              {"arena GiB"},
                              {"gathered GiB"},
                              {"copied GiB"},
                              {"step"},
                              {counts_tokens ? "tokens/s" : "samples/s"}}};
  std::string refused;
  for (const PolicyRow& row : rows) {
    if (!row.why_not.empty()) {
      table.rows.push_back({row.name, row.of, "-", "-", "-", "-", "-", "-"});
      refused += "  " + wrapped(row.name + ": " + row.why_not, 4) + "\n";
      continue;
    }
    const Summary& s = row.summary;
    table.rows.push_back({row.name, row.of, in_gib_text(live_peak(s)), in_gib_text(arena(s)), in_gib_text(row.traffic.gathered),
                          in_gib_text(row.traffic.copied), in_time(s.iteration_time),
                          with_commas(counts_tokens ? s.tokens_per_s : s.samples_per_s)});
  }
  const std::string note =
      "gathered: parameters all-gathered in a step; copied: to and from host memory and drives; both of a GPU";
  return table.text(unicode) + "  " + wrapped(note, 2) + "\n" + (refused.empty() ? "" : "\nNot possible here\n" + refused);
}

std::string policy_table_json(const std::vector<PolicyRow>& rows) {
  JsonWriter json;
  json.begin_object();
  json.key("policies").begin_array();
  for (const PolicyRow& row : rows) {
    json.begin_object().field("policy", row.name).field("of", row.of).field("feasible", row.why_not.empty());
    if (!row.why_not.empty()) {
      json.field("infeasible_reason", row.why_not).end_object();
      continue;
    }
    json.field("live_peak_bytes", live_peak(row.summary).value).field("arena_bytes", arena(row.summary).value);
    json.field("gathered_bytes", row.traffic.gathered.value).field("copied_bytes", row.traffic.copied.value);
    json.field("iteration_time_s", row.summary.iteration_time.value).field("tokens_per_s", row.summary.tokens_per_s);
    json.field("samples_per_s", row.summary.samples_per_s).end_object();
  }
  return json.end_array().end_object().text();
}

}  // namespace foreshard
