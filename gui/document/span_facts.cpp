#include "gui/document/span_facts.h"

#include <QCoreApplication>
#include <QStringList>
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "core/plan/plan_words.h"
#include "core/plan/ranks.h"
#include "core/strategy/strategy.h"
#include "gui/document/timeline_labels.h"
#include "gui/document/words.h"
#include "report/words/span_words.h"

namespace foreshard {

namespace {

QString words(const char* text) { return QCoreApplication::translate("Facts", text); }

struct Sum {  // over the instructions of a span
  std::vector<const Instruction*> members = {};
  Flops flops = {};
  Bytes traffic = {};
  Nanoseconds isolated = {};
  DType type = DType::BF16;  // of the instruction with most FLOPs
};

Sum sum_of(const Document& document, const Span& span) {
  Sum sum;
  const Plan& plan = document.plan();
  const Action& action = action_of(plan, document.trace(), span);
  const std::vector<Instruction>& all = plan.segments[action.segment.index()].instructions;
  const Role& role = role_of(plan, document.trace(), span.who);
  const auto costs = std::ranges::find(plan.costs, role.device_kind, &CostTable::device_kind);
  double most = -1;
  for (auto i = static_cast<std::size_t>(span.instruction);
       i < all.size() && sum.members.size() < static_cast<std::size_t>(span.count); ++i) {
    if (all[i].stream != span.stream) continue;
    sum.members.push_back(&all[i]);
    if (costs != plan.costs.end()) sum.isolated += costs->by_segment[action.segment.index()][i].busy;
    const auto* compute = std::get_if<Compute>(&all[i].what);
    if (compute == nullptr) continue;
    sum.flops += compute->flops;
    sum.traffic += compute->traffic;
    if (compute->flops.value > most && !compute->shapes.empty()) {
      most = compute->flops.value;
      sum.type = compute->shapes.front().dtype;
    }
  }
  return sum;
}

QString shape_words(const Shape& shape) {
  QStringList dims;
  for (const std::int64_t dim : shape.dims) dims << QString::number(dim);
  return dims.join(QString::fromUtf8("\u00d7")) + " " + QString::fromLatin1(name_of(shape.dtype));
}

QString phase_words(Phase phase) {
  switch (phase) {
    case Phase::Forward: return words("forward");
    case Phase::InputGrad: return words("input gradient");
    case Phase::WeightGrad: return words("weight gradient");
    case Phase::Backward: return words("backward");
    case Phase::Recompute: return words("recomputation");
    case Phase::Update: return words("update");
    case Phase::Other: return {};
  }
  return {};
}

// "matmul (weight gradient)".
QString operation_words(const Compute& compute) {
  const QString op = QString::fromStdString(word(compute.op)), phase = phase_words(compute.phase);
  return phase.isEmpty() ? op : QString("%1 (%2)").arg(op, phase);
}

FactSection compute_section(const Sum& sum, const Compute& first, const Span& span) {
  FactSection section{words("Work"), {}};
  section.facts.push_back({words("operation"), operation_words(first), {}});
  if (sum.members.size() > 1)
    section.facts.push_back({words("operations in this span"), count_words(static_cast<std::int64_t>(sum.members.size())), {}});
  else
    for (const Shape& shape : first.shapes) section.facts.push_back({words("shape"), shape_words(shape), {}});
  const std::string settings = settings_text(first.op);
  if (!settings.empty() && sum.members.size() == 1)
    section.facts.push_back({words("settings"), QString::fromStdString(settings), {}});
  const double seconds = to_seconds(span.end - span.begin).value;
  if (sum.flops.value > 0) section.facts.push_back({words("FLOPs"), rate_words(sum.flops.value, "FLOP"), {}});
  section.facts.push_back({words("memory traffic"), bytes_words(sum.traffic), {}});
  if (seconds <= 0) return section;
  if (sum.flops.value > 0) section.facts.push_back({words("rate"), rate_words(sum.flops.value / seconds, "FLOP/s"), {}});
  section.facts.push_back({words("memory rate"), rate_words(static_cast<double>(sum.traffic.value) / seconds, "B/s"), {}});
  return section;
}

FactSection transfer_section(const QString& kind, Bytes bytes, const Span& span) {
  FactSection section{words("Work"), {{words("operation"), kind, {}}, {words("bytes"), bytes_words(bytes), {}}}};
  const double seconds = to_seconds(span.end - span.begin).value;
  if (seconds > 0)
    section.facts.push_back({words("throughput"), rate_words(static_cast<double>(bytes.value) / seconds, "B/s"), {}});
  return section;
}

FactSection collective_section(const Document& document, const Collective& collective, const Span& span) {
  FactSection section = transfer_section(QString::fromStdString(word(collective.kind)), collective.bytes, span);
  section.facts.push_back({words("algorithm"), QString::fromLatin1(name_of(collective.algorithm)), {}});
  section.facts.push_back({words("group"), QString::fromStdString(document.plan().groups[collective.group.index()].name), {}});
  const Ranks ranks(document.plan());
  const RoleId role = document.trace().classes[span.who.index()].role;
  section.facts.push_back({words("ranks in it"), count_words(ranks.members(collective.group, role)), {}});
  return section;
}

const Gpu* gpu_named(const Document& document, const std::string& name) {
  if (!document.cluster) return nullptr;
  const auto found = std::ranges::find(document.cluster->gpus, name, &Gpu::name);
  return found == document.cluster->gpus.end() ? nullptr : &*found;
}

}  // namespace

QString rate_words(double per_second, const char* unit) {
  static constexpr std::array<const char*, 7> prefixes = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t prefix = 0;
  for (; std::abs(per_second) >= 1000 && prefix + 1 < prefixes.size(); ++prefix) per_second /= 1000;
  const int decimals = per_second >= 100 ? 0 : per_second >= 10 ? 1 : 2;
  return QString::number(per_second, 'f', decimals) + " " + QString::fromLatin1(prefixes[prefix]) + QString::fromLatin1(unit);
}

QString span_title(const Document& document, std::int32_t index) {
  const Span& span = document.trace().spans[static_cast<std::size_t>(index)];
  const Instruction& instruction = instruction_of(document.plan(), document.trace(), span);
  const Role& role = role_of(document.plan(), document.trace(), span.who);
  const bool layer = span.count > 1 && instruction.layer.valid() && instruction.layer.index() < role.layers.size();
  return QString::fromStdString(action_name(document.plan(), action_of(document.plan(), document.trace(), span))) + ": " +
         (layer ? QString::fromStdString(role.layers[instruction.layer.index()]) : instruction_words(instruction.name));
}

FactSection time_section(const Document& document, const Span& span) {
  const Role& role = role_of(document.plan(), document.trace(), span.who);
  const Sum sum = sum_of(document, span);
  const Nanoseconds length = span.end - span.begin;
  FactSection section{words("Time"),
                      {{words("duration"), time_text(length), {}},
                       {words("start"), tick_text(span.begin, {1000}), {}},
                       {words("stream"), QString::fromStdString(role.streams[span.stream.index()].name), {}}}};
  if (span.begin > span.ready)
    section.facts.push_back({words("ready"), words("%1 earlier").arg(time_text(span.begin - span.ready)), {}});
  const bool compute = !sum.members.empty() && std::holds_alternative<Compute>(sum.members.front()->what);
  if (compute && sum.isolated > Nanoseconds{} && sum.isolated != length)
    section.facts.push_back({words("alone it would take"), time_text(sum.isolated), {}});
  return section;
}

std::vector<FactSection> work_sections(const Document& document, const Span& span) {
  const Sum sum = sum_of(document, span);
  if (sum.members.empty()) return {};
  const auto& what = sum.members.front()->what;
  if (sum.flops.value > 0 || std::holds_alternative<Compute>(what))
    for (const Instruction* member : sum.members)
      if (const auto* compute = std::get_if<Compute>(&member->what)) return {compute_section(sum, *compute, span)};
  if (const auto* collective = std::get_if<Collective>(&what)) return {collective_section(document, *collective, span)};
  if (const auto* exchange = std::get_if<Exchange>(&what)) {
    const char* kind = exchange->to && exchange->from ? "send and receive" : exchange->to ? "send" : "receive";
    return {transfer_section(words(kind), exchange->bytes, span)};
  }
  if (const auto* copy = std::get_if<Copy>(&what)) return {transfer_section(words("copy"), copy->bytes, span)};
  if (const auto* host = std::get_if<HostCompute>(&what))
    return {transfer_section(QString::fromStdString(word(host->op)) + words(" on the host"), host->traffic, span)};
  return {};
}

std::optional<RooflinePoint> roofline_of(const Document& document, const Span& span) {
  const Sum sum = sum_of(document, span);
  const Gpu* gpu = gpu_named(document, role_of(document.plan(), document.trace(), span.who).device_kind);
  const double seconds = to_seconds(span.end - span.begin).value;
  if (gpu == nullptr || sum.flops.value <= 0 || sum.traffic <= Bytes{} || seconds <= 0) return {};
  return RooflinePoint{sum.flops.value / static_cast<double>(sum.traffic.value), sum.flops.value / seconds,
                       peak(*gpu, sum.type).value, gpu->memory_bandwidth.value};
}

}  // namespace foreshard
