#include "gui/document/delta.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>
#include <map>

#include "gui/document/timeline_labels.h"
#include "gui/document/words.h"
#include "report/summary/memory_rows.h"
#include "report/words/devices.h"

namespace foreshard {

static QString words(const char* text) { return QCoreApplication::translate("Delta", text); }

Alike alike(const Document& a, const Document& b) {
  if (a.model != b.model || a.workload.parameters != b.workload.parameters) return Alike::OtherModel;
  return same_device(a.result, b.result) ? Alike::Yes : Alike::OtherDevice;
}

bool can_change(const DeltaRow& row, Alike documents) {
  const bool timeless = row.unit == DeltaUnit::Bytes || row.unit == DeltaUnit::Count;
  return documents == Alike::Yes || (documents == Alike::OtherDevice && timeless);
}

double DeltaRow::change() const {
  if (unit == DeltaUnit::Share) return b - a;
  return a != 0 ? (b - a) / a : 0;
}

QString delta_text(const DeltaRow& row, double value) {
  switch (row.unit) {
    case DeltaUnit::Time: return time_text(Nanoseconds{std::llround(value * 1e9)});
    case DeltaUnit::Bytes: return bytes_words({static_cast<std::int64_t>(value)});
    case DeltaUnit::Share: return percent_words(value);
    case DeltaUnit::Rate: return number_words(value);
    case DeltaUnit::Count: return count_words(std::llround(value));
  }
  return {};
}

QString change_text(const DeltaRow& row) {
  const double change = row.change() * 100;
  if (std::abs(change) < 0.05) return "=";
  const QString number = QString::number(std::abs(change), 'f', 1);
  const QString sign = change > 0 ? "+" : QString::fromUtf8("\u2212");
  return row.unit == DeltaUnit::Share ? words("%1%2 points").arg(sign, number) : sign + number + " %";
}

// The exposed communication that runs on the compute stream; the rest of it is waiting time.
static double in_line(const Summary& of) {
  constexpr auto exposed = static_cast<std::size_t>(BubbleCause::ExposedCommunication);
  return of.communication.exposed - (exposed < of.bubble.by_cause.size() ? of.bubble.by_cause[exposed] : 0);
}

std::vector<DeltaRow> delta_rows(const Document& a, const Document& b) {
  std::vector<DeltaRow> rows;
  const auto add = [&](const QString& label, DeltaUnit unit, double of_a, double of_b, bool less_is_better = true) {
    if (of_a != 0 || of_b != 0) rows.push_back({label, unit, of_a, of_b, less_is_better});
  };
  const Summary &x = a.summary, &y = b.summary;
  add(words("iteration time"), DeltaUnit::Time, x.iteration_time.value, y.iteration_time.value);
  add(rate_words(b), DeltaUnit::Rate, x.tokens_per_s, y.tokens_per_s, false);
  add(b.workload.tokens_per_sample > 0 ? words("tokens per second and GPU") : words("samples per second and GPU"),
      DeltaUnit::Rate, x.tokens_per_s_per_gpu, y.tokens_per_s_per_gpu, false);
  add(words("model FLOPs utilisation"), DeltaUnit::Share, x.flops.model_utilization, y.flops.model_utilization, false);
  add(words("idle"), DeltaUnit::Share, x.bubble.fraction, y.bubble.fraction);
  for (std::size_t c = 0; c < kBubbleCauses && c < x.bubble.by_cause.size() && c < y.bubble.by_cause.size(); ++c)
    add("  " + cause_words(static_cast<BubbleCause>(c)), DeltaUnit::Share, x.bubble.by_cause[c], y.bubble.by_cause[c]);
  add(words("communication not hidden"), DeltaUnit::Share, x.communication.exposed, y.communication.exposed);
  add("  " + words("in line with the compute"), DeltaUnit::Share, in_line(x), in_line(y));
  add(words("hidden communication"), DeltaUnit::Share, x.communication.hidden, y.communication.hidden, false);
  const auto peak = [](const Summary& of) {
    const StageMemory* stage = fullest_stage(of);
    return stage == nullptr ? 0.0 : static_cast<double>(peak_of(of, *stage).value);
  };
  const auto reserved = [](const Summary& of) {
    Bytes largest = {};
    for (const StageMemory& stage : of.memory) largest = std::max(largest, stage.with_framework);
    return static_cast<double>(largest.value);
  };
  add(words("peak incl. framework"), DeltaUnit::Bytes, peak(x), peak(y));
  add(words("reserved arena"), DeltaUnit::Bytes, reserved(x), reserved(y));
  add(words("cost per million tokens"), DeltaUnit::Rate, x.cost_per_million_tokens.value_or(0),
      y.cost_per_million_tokens.value_or(0));
  add(words("GPUs"), DeltaUnit::Count, x.gpus, y.gpus);
  add(words("micro-batches"), DeltaUnit::Count, x.microbatches, y.microbatches);
  for (std::size_t s = 0; s < std::min(x.stage_times.size(), y.stage_times.size()); ++s) {
    add(words("forward of stage %1").arg(s), DeltaUnit::Time, x.stage_times[s].forward.value, y.stage_times[s].forward.value);
    const auto backward = [s](const Summary& of) {
      return of.stage_times[s].backward_input.value + of.stage_times[s].backward_weight.value;
    };
    add(words("backward of stage %1").arg(s), DeltaUnit::Time, backward(x), backward(y));
  }
  return rows;
}

// [role]: the begins of the cells, in order, of the first class with this role.
static std::map<std::int32_t, std::vector<Nanoseconds>> cell_begins(const Document& document) {
  std::map<std::int32_t, std::vector<Nanoseconds>> begins;
  for (const Lane& lane : document.lanes.all) {
    if (lane.kind != LaneKind::Compute) continue;
    const auto [at, fresh] = begins.emplace(document.trace().classes[lane.who.index()].role.value, std::vector<Nanoseconds>());
    for (std::size_t i = 0; fresh && i < lane.size(); ++i)
      if (lane.look_of(i).first) at->second.push_back({lane.begin[i]});
  }
  return begins;
}

std::optional<Nanoseconds> first_divergence(const Document& a, const Document& b, Nanoseconds tolerance) {
  const auto of_a = cell_begins(a), of_b = cell_begins(b);
  std::optional<Nanoseconds> earliest;
  for (const auto& [role, begins] : of_a) {
    const auto other = of_b.find(role);
    for (std::size_t i = 0; i < begins.size(); ++i) {
      const bool there = other != of_b.end() && i < other->second.size();
      if (there && std::abs((other->second[i] - begins[i]).value) <= tolerance.value) continue;
      if (!earliest || begins[i] < *earliest) earliest = begins[i];
      break;
    }
  }
  return earliest;
}

}  // namespace foreshard
