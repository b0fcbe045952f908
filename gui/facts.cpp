#include "gui/facts.h"

#include <QCoreApplication>
#include <algorithm>

#include "core/plan_words.h"
#include "gui/binding_arrows.h"
#include "gui/span_facts.h"
#include "gui/timeline_labels.h"
#include "gui/words.h"
#include "report/span_words.h"
#include "report/text_table.h"

namespace foreshard {

double RooflinePoint::roof() const { return std::min(peak, intensity * bandwidth); }

namespace {

QString words(const char* text) { return QCoreApplication::translate("Facts", text); }
QString role_title(const Document& document, ClassId who) { return class_words(document.plan(), document.trace(), who); }

double share(Nanoseconds part, Nanoseconds whole) {
  return whole.value > 0 ? static_cast<double>(part.value) / static_cast<double>(whole.value) : 0;
}

// Hops inside one action of one class are one line.
FactSection chain_section(const Document& document, Picked picked) {
  FactSection section{words("What it waited for, latest first"), {}};
  const std::vector<ChainHop> hops = binding_hops(document, picked, Arrows::Chain);
  const auto span_at = [&](std::size_t hop) -> const Span& {
    return document.trace().spans[static_cast<std::size_t>(hops[hop].from)];
  };
  for (std::size_t first = 0, last = 0; first < hops.size() && section.facts.size() < kChainShown; first = last) {
    const Span& latest = span_at(first);
    while (last < hops.size() && span_at(last).who == latest.who && span_at(last).action == latest.action) ++last;
    const Action& action = action_of(document.plan(), document.trace(), latest);
    const QString name = last - first == 1 ? span_title(document, hops[first].from)
                                           : QString::fromStdString(action_name(document.plan(), action));
    section.facts.push_back({name + words(" on ") + role_words(role_of(document.plan(), document.trace(), latest.who).name),
                             time_text(latest.end - span_at(last - 1).begin),
                             {PickedKind::Span, hops[first].from, {}}});
  }
  return section;
}

Facts bubble_facts(const Document& document, const Bubble& bubble, Picked picked) {
  const Nanoseconds length = bubble.end - bubble.begin, makespan = document.trace().makespan;
  Facts facts{words("Idle %1: %2").arg(time_text(length), cause_words(bubble.cause)), cause_explained(bubble.cause), {}, {}};
  facts.sections.push_back({words("Where"),
                            {{words("stage"), role_title(document, bubble.who), {PickedKind::Class, bubble.who.value, {}}},
                             {words("from"), tick_text(bubble.begin, {1000}), {}},
                             {words("share of the iteration"), percent_words(share(length, makespan)), {}}}});
  Nanoseconds same = {};
  const auto first = static_cast<std::size_t>(document.lanes.first_bubble[bubble.who.index()]);
  const auto last = static_cast<std::size_t>(document.lanes.first_bubble[bubble.who.index() + 1]);
  for (std::size_t b = first; b < last; ++b)
    if (document.bubbles[b].cause == bubble.cause) same += document.bubbles[b].end - document.bubbles[b].begin;
  facts.sections.front().facts.push_back(
      {words("all of this cause here"), time_text(same) + ", " + percent_words(share(same, makespan)), {}});
  FactSection end{words("It ended when"), {}};
  if (bubble.before >= 0)
    end.facts.push_back({span_title(document, bubble.before), words("could start"), {PickedKind::Span, bubble.before, {}}});
  else
    end.facts.push_back({words("the iteration ended"), {}, {}});
  facts.sections.push_back(std::move(end));
  if (FactSection chain = chain_section(document, picked); !chain.facts.empty()) facts.sections.push_back(std::move(chain));
  return facts;
}

Facts span_facts(const Document& document, std::int32_t index, const Twin* twin, Picked picked) {
  const Span& span = document.trace().spans[static_cast<std::size_t>(index)];
  Facts facts{span_title(document, index), role_title(document, span.who), {}, {}};
  facts.sections.push_back(time_section(document, span));
  for (FactSection& section : work_sections(document, span)) facts.sections.push_back(std::move(section));
  facts.roofline = roofline_of(document, span);
  if (twin != nullptr && span.who.index() < twin->cells.size()) {
    const auto& cells = twin->cells[span.who.index()];
    const auto cell = std::ranges::find(cells, span.action, &ErrorCell::action);
    if (cell != cells.end())
      facts.sections.push_back({words("Measured, its whole action"),
                                {{words("predicted"), time_text(cell->predicted), {}},
                                 {words("measured"), time_text(cell->measured), {}},
                                 {words("error"), (cell->error() > 0 ? "+" : "") + percent_words(cell->error()), {}}}});
  }
  if (FactSection chain = chain_section(document, picked); !chain.facts.empty()) facts.sections.push_back(std::move(chain));
  return facts;
}

Facts class_facts(const Document& document, ClassId who) {
  const Role& role = role_of(document.plan(), document.trace(), who);
  const Nanoseconds makespan = document.trace().makespan;
  Facts facts{role_words(role.name), {}, {}, {}};
  const auto ranks = static_cast<int>(document.trace().classes[who.index()].members.size());
  facts.explained = (ranks == 1 ? words("1 rank on ") : words("%1 ranks that run the same program on ").arg(ranks)) +
                    QString::fromStdString(role.device_kind);
  const Lane* lane = document.lanes.find(who, LaneKind::Compute);
  const Nanoseconds busy = {lane == nullptr ? 0 : lane->busy_until(makespan.value)};
  FactSection time{words("Time"), {{words("busy"), time_text(busy) + ", " + percent_words(share(busy, makespan)), {}}}};
  std::array<Nanoseconds, kBubbleCauses> idle = {};
  for (auto b = static_cast<std::size_t>(document.lanes.first_bubble[who.index()]);
       b < static_cast<std::size_t>(document.lanes.first_bubble[who.index() + 1]); ++b)
    idle[static_cast<std::size_t>(document.bubbles[b].cause)] += document.bubbles[b].end - document.bubbles[b].begin;
  for (int c = 0; c < kBubbleCauses; ++c)
    if (const Nanoseconds part = idle[static_cast<std::size_t>(c)]; part > Nanoseconds{})
      time.facts.push_back(
          {cause_words(static_cast<BubbleCause>(c)), time_text(part) + ", " + percent_words(share(part, makespan)), {}});
  facts.sections.push_back(std::move(time));
  const std::size_t at = document.trace().classes[who.index()].role.index();
  if (at >= document.summary.memory.size()) return facts;
  const StageMemory& memory = document.summary.memory[at];
  FactSection bytes{words("Memory"), {}};
  bytes.facts.push_back({words("live peak"), bytes_words(memory.live_peak), {}});
  for (int c = 0; c < kCategories; ++c)
    if (memory.peak[static_cast<std::size_t>(c)] > Bytes{})
      bytes.facts.push_back(
          {"  " + category_words(static_cast<Category>(c)), bytes_words(memory.peak[static_cast<std::size_t>(c)]), {}});
  if (memory.order_bound > Bytes{}) bytes.facts.push_back({words("order bound"), bytes_words(memory.order_bound), {}});
  bytes.facts.push_back({words("arena"), bytes_words(memory.arena), {}});
  facts.sections.push_back(std::move(bytes));
  return facts;
}

Facts link_facts(const Document& document, const LinkClass& link) {
  Facts facts{QString::fromStdString(link.name), {}, {}, {}};
  facts.explained =
      link.links.size() == 1 ? words("1 link") : words("%1 links of this kind carry the same").arg(link.links.size());
  const double seconds = to_seconds(document.trace().makespan).value;
  const double possible = link.bandwidth.value * seconds;
  facts.sections.push_back(
      {words("Over the whole run"),
       {{words("bandwidth"), rate_words(link.bandwidth.value, "B/s"), {}},
        {words("carried"), bytes_words({static_cast<std::int64_t>(link.bytes)}), {}},
        {words("used"), percent_words(possible > 0 ? link.bytes / possible : 0), {}},
        {words("busy"), percent_words(seconds > 0 ? link.busy.value / seconds : 0), {}},
        {words("rate while busy"), rate_words(link.busy.value > 0 ? link.bytes / link.busy.value : 0, "B/s"), {}}}});
  return facts;
}

Facts run_facts(const Document& document) {
  const Summary& summary = document.summary;
  Facts facts{words("The whole iteration"), words("Click a bubble, an operation, a stage or a link to look into it."), {}, {}};
  if (!summary.feasible) facts.explained = QString::fromStdString(summary.infeasible_reason);
  FactSection time{words("Time"), {{words("iteration"), time_text(document.trace().makespan), {}}}};
  if (summary.tokens_per_s > 0)
    time.facts.push_back({words("tokens per second"), QString::fromStdString(with_commas(summary.tokens_per_s)), {}});
  if (summary.model_flops_utilization > 0)
    time.facts.push_back({words("model FLOPs utilisation"), percent_words(summary.model_flops_utilization), {}});
  time.facts.push_back({words("idle"), percent_words(summary.bubble_fraction), {}});
  for (std::size_t c = 0; c < summary.bubble_by_cause.size(); ++c)
    if (summary.bubble_by_cause[c] > 0)
      time.facts.push_back({"  " + cause_words(static_cast<BubbleCause>(c)), percent_words(summary.bubble_by_cause[c]), {}});
  facts.sections.push_back(std::move(time));
  if (summary.capacity > Bytes{})
    facts.sections.push_back(
        {words("Memory of a device"),
         {{words("capacity"), bytes_words(summary.capacity), {}}, {words("to spare"), bytes_words(summary.fits_margin), {}}}});
  if (document.remarks.empty()) return facts;
  FactSection remarks{words("Remarks"), {}};
  for (const std::string& remark : document.remarks) remarks.facts.push_back({QString::fromStdString(remark), {}, {}});
  facts.sections.push_back(std::move(remarks));
  return facts;
}

}  // namespace

Facts facts_of(const Document& document, Picked picked, const Twin* twin) {
  const auto at = static_cast<std::size_t>(picked.index);
  const bool known = picked.index >= 0;
  switch (picked.kind) {
    case PickedKind::Span:
      if (known && at < document.trace().spans.size()) return span_facts(document, picked.index, twin, picked);
      break;
    case PickedKind::Bubble:
      if (known && at < document.bubbles.size()) return bubble_facts(document, document.bubbles[at], picked);
      break;
    case PickedKind::Class:
      if (known && at < document.trace().classes.size()) return class_facts(document, {picked.index});
      break;
    case PickedKind::Link:
      if (known && at < document.trace().links.size()) return link_facts(document, document.trace().links[at]);
      break;
    case PickedKind::Nothing: break;
  }
  return run_facts(document);
}

}  // namespace foreshard
