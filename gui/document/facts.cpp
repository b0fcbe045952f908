#include "gui/document/facts.h"

#include <QCoreApplication>
#include <algorithm>
#include <array>
#include <climits>

#include "core/network/network.h"
#include "core/plan/plan_words.h"
#include "gui/document/binding_arrows.h"
#include "gui/document/picked_range.h"
#include "gui/document/span_facts.h"
#include "gui/document/timeline_labels.h"
#include "gui/document/words.h"
#include "report/causes/critical_path.h"
#include "report/summary/memory_rows.h"
#include "report/words/span_words.h"
#include "report/words/text_table.h"

namespace foreshard {

double RooflinePoint::roof() const { return std::min(peak, intensity * bandwidth); }

namespace {

constexpr auto kExposed = static_cast<std::size_t>(BubbleCause::ExposedCommunication);

QString words(const char* text) { return QCoreApplication::translate("Facts", text); }
QString role_title(const Document& document, ClassId who) { return class_words(document.plan(), document.trace(), who); }

double share(Nanoseconds part, Nanoseconds whole) {
  return whole.value > 0 ? static_cast<double>(part.value) / static_cast<double>(whole.value) : 0;
}

// Hops within one action of one class form one line. The number of omitted lines is given.
FactSection chain_section(const Document& document, Picked picked) {
  FactSection section{words("What it waited for, latest first"), {}};
  const std::vector<ChainHop> hops = binding_hops(document, picked, Arrows::Chain, INT_MAX);
  int more = 0;
  const auto span_at = [&](std::size_t hop) -> const Span& {
    return document.trace().spans[static_cast<std::size_t>(hops[hop].from)];
  };
  for (std::size_t first = 0, last = 0; first < hops.size(); first = last) {
    const Span& latest = span_at(first);
    while (last < hops.size() && span_at(last).who == latest.who && span_at(last).action == latest.action) ++last;
    if (section.facts.size() == kChainShown) {
      ++more;
      continue;
    }
    const Action& action = action_of(document.plan(), document.trace(), latest);
    const QString name = last - first == 1 ? span_title(document, hops[first].from)
                                           : QString::fromStdString(action_name(document.plan(), action));
    section.facts.push_back({name + words(" on ") + role_words(role_of(document.plan(), document.trace(), latest.who).name),
                             time_text(latest.end - span_at(last - 1).begin),
                             {PickedKind::Span, hops[first].from, {}}});
  }
  if (more > 0) section.facts.push_back({words("... %1 more").arg(count_words(more)), {}, {}});
  return section;
}

// The causes of a bubble that has several, each with its time.
FactSection parts_section(const Document& document, const Bubble& bubble) {
  FactSection section{words("Made of"), {}};
  std::array<Nanoseconds, kBubbleCauses> sums = {};
  std::array<int, kBubbleCauses> pieces = {};
  for (const Bubble& piece : document.pieces_of(bubble)) {
    sums[static_cast<std::size_t>(piece.cause)] += piece.end - piece.begin;
    ++pieces[static_cast<std::size_t>(piece.cause)];
  }
  if (std::ranges::count(pieces, 0) >= kBubbleCauses - 1) return section;
  for (std::size_t c = 0; c < kBubbleCauses; ++c)
    if (pieces[c] > 0) {
      const QString name = cause_words(static_cast<BubbleCause>(c));
      section.facts.push_back({pieces[c] == 1 ? name : words("%1, %2 times").arg(name, count_words(pieces[c])),
                               time_text(sums[c]) + ", " + percent_words(share(sums[c], bubble.end - bubble.begin)),
                               {}});
    }
  return section;
}

Facts bubble_facts(const Document& document, const Bubble& bubble, Picked picked) {
  const Nanoseconds length = bubble.end - bubble.begin, makespan = document.trace().makespan;
  Facts facts{words("Idle %1: %2").arg(time_text(length), cause_words(bubble.cause)), cause_explained(bubble.cause), {}, {}};
  facts.sections.push_back({words("Where"),
                            {{words("stage"), role_title(document, bubble.who), {PickedKind::Class, bubble.who.value, {}}},
                             {words("start"), tick_text(bubble.begin, {1000}), {}},
                             {words("share of the iteration"), percent_words(share(length, makespan)), {}}}});
  Nanoseconds same = {};
  for (const Bubble& piece : document.pieces_of(bubble.who))
    if (piece.cause == bubble.cause) same += piece.end - piece.begin;
  facts.sections.front().facts.push_back(
      {words("total of this cause on this stage"), time_text(same) + ", " + percent_words(share(same, makespan)), {}});
  if (FactSection parts = parts_section(document, bubble); !parts.facts.empty()) facts.sections.push_back(std::move(parts));
  FactSection end{words("Ended when"), {}};
  if (bubble.before >= 0)
    end.facts.push_back(
        {words("%1 could start").arg(span_title(document, bubble.before)), {}, {PickedKind::Span, bubble.before, {}}});
  else
    end.facts.push_back({words("the iteration ended"), {}, {}});
  facts.sections.push_back(std::move(end));
  if (FactSection chain = chain_section(document, picked); !chain.facts.empty()) facts.sections.push_back(std::move(chain));
  return facts;
}

std::optional<FactSection> measured_section(const Span& span, const Twin* twin) {
  if (twin == nullptr || span.who.index() >= twin->cells.size()) return {};
  const auto& cells = twin->cells[span.who.index()];
  const auto cell = std::ranges::find(cells, span.action, &ErrorCell::action);
  if (cell == cells.end()) return {};
  return FactSection{words("Measured, its whole action"),
                     {{words("predicted"), time_text(cell->predicted), {}},
                      {words("measured"), time_text(cell->measured), {}},
                      {words("error"), (cell->error() > 0 ? "+" : "") + percent_words(cell->error()), {}}}};
}

// All spans of an action that lie on the stream of the first.
Facts action_facts(const Document& document, const Twin* twin, Picked picked) {
  const std::int32_t first = span_of(document, picked);
  const Span& span = document.trace().spans[static_cast<std::size_t>(first)];
  const TimeRange range = *range_of(document, picked);
  const Action& action = action_of(document.plan(), document.trace(), span);
  Facts facts{QString::fromStdString(action_name(document.plan(), action)), role_title(document, span.who), {}, {}};
  int parts = 0;
  Nanoseconds busy = {};
  for (auto s = static_cast<std::size_t>(first); s < document.trace().spans.size(); ++s) {
    const Span& other = document.trace().spans[s];
    if (other.who != span.who || other.stream != span.stream || other.action != span.action) break;
    parts += other.count;
    busy += other.end - other.begin;
  }
  facts.sections.push_back({words("Time"),
                            {{words("duration"), time_text(range.length()), {}},
                             {words("start"), tick_text(range.begin, {1000}), {}},
                             {words("busy"), time_text(busy) + ", " + percent_words(share(busy, range.length())), {}},
                             {words("operations"), count_words(parts), {}}}});
  facts.sections.push_back({words("Begins with"), {{span_title(document, first), {}, {PickedKind::Span, first, {}}}}});
  if (const auto measured = measured_section(span, twin)) facts.sections.push_back(*measured);
  if (FactSection chain = chain_section(document, picked); !chain.facts.empty()) facts.sections.push_back(std::move(chain));
  return facts;
}

Facts span_facts(const Document& document, std::int32_t index, const Twin* twin, Picked picked) {
  const Span& span = document.trace().spans[static_cast<std::size_t>(index)];
  Facts facts{span_title(document, index), role_title(document, span.who), {}, {}};
  facts.sections.push_back(time_section(document, span));
  for (FactSection& section : work_sections(document, span)) facts.sections.push_back(std::move(section));
  facts.roofline = roofline_of(document, span);
  if (const auto measured = measured_section(span, twin)) facts.sections.push_back(*measured);
  if (FactSection chain = chain_section(document, picked); !chain.facts.empty()) facts.sections.push_back(std::move(chain));
  return facts;
}

// The categories, which sum to the peak, and the total with framework memory.
FactSection memory_section(const Summary& summary, const StageMemory& stage) {
  FactSection section{words("Memory"), {{words("peak incl. framework"), peak_words(summary, stage), {}}}};
  const LiveBytes parts = peak_parts(summary, stage);
  for (std::size_t c = 0; c < kCategories; ++c)
    if (parts[c] > Bytes{})
      section.facts.push_back({"  " + category_words(static_cast<Category>(c)), bytes_words(parts[c]), {}});
  if (stage.order_bound > Bytes{})
    section.facts.push_back({words("worst case of any order"), bytes_words(stage.order_bound + summary.fit.framework), {}});
  section.facts.push_back({words("reserved arena"), bytes_words(stage.with_framework), {}});
  return section;
}

Facts class_facts(const Document& document, ClassId who) {
  const Role& role = role_of(document.plan(), document.trace(), who);
  const Nanoseconds makespan = document.trace().makespan;
  Facts facts{role_words(role.name), {}, {}, {}};
  const auto ranks = static_cast<int>(document.trace().classes[who.index()].members.size());
  facts.explained =
      (ranks == 1 ? words("1 rank on ") : words("%1 ranks that run the same program on ").arg(count_words(ranks))) +
      QString::fromStdString(role.device_kind);
  const Lane* lane = document.lanes.find(who, LaneKind::Compute);
  const Nanoseconds busy = {lane == nullptr ? 0 : lane->busy_until(makespan.value)};
  FactSection time{words("Time"), {{words("busy"), time_text(busy) + ", " + percent_words(share(busy, makespan)), {}}}};
  std::array<Nanoseconds, kBubbleCauses> idle = {};
  for (const Bubble& piece : document.pieces_of(who)) idle[static_cast<std::size_t>(piece.cause)] += piece.end - piece.begin;
  for (int c = 0; c < kBubbleCauses; ++c)
    if (const Nanoseconds part = idle[static_cast<std::size_t>(c)]; part > Nanoseconds{})
      time.facts.push_back(
          {cause_words(static_cast<BubbleCause>(c)), time_text(part) + ", " + percent_words(share(part, makespan)), {}});
  facts.sections.push_back(std::move(time));
  const std::size_t at = document.trace().classes[who.index()].role.index();
  if (at >= document.summary.memory.size()) return facts;
  facts.sections.push_back(memory_section(document.summary, document.summary.memory[at]));
  return facts;
}

// What was clicked by its own name; the class is called by the name of one of its links.
QString link_name(const Document& document, const LinkClass& link, LinkId meant) {
  if (!meant.valid() || !document.cluster || std::ranges::find(link.links, meant) == link.links.end())
    return QString::fromStdString(link.name);
  return QString::fromStdString(Network(*document.cluster).name(meant));
}

Facts link_facts(const Document& document, const LinkClass& link, LinkId meant) {
  Facts facts{link_name(document, link, meant), {}, {}, {}};
  facts.explained = link.links.size() == 1
                        ? words("1 link")
                        : words("%1 identical links").arg(count_words(static_cast<std::int64_t>(link.links.size())));
  const double seconds = to_seconds(document.trace().makespan).value;
  const double possible = link.bandwidth.value * seconds;
  facts.sections.push_back({words("Over the whole run"),
                            {{words("bandwidth"), rate_words(link.bandwidth.value, "B/s"), {}},
                             {words("carried"), bytes_words({static_cast<std::int64_t>(link.bytes)}), {}},
                             {words("used"), percent_words(possible > 0 ? link.bytes / possible : 0), {}},
                             {words("busy"), percent_words(seconds > 0 ? link.busy.value / seconds : 0), {}}}});
  if (link.busy.value > 0)
    facts.sections.back().facts.push_back({words("rate while busy"), rate_words(link.bytes / link.busy.value, "B/s"), {}});
  return facts;
}

FactSection path_section(const Document& document) {
  FactSection section{words("Critical path of the run"), {}};
  const PathTimes& times = document.critical_times;
  for (std::size_t k = 0; k < kPathKinds; ++k)
    if (times[k] > Nanoseconds{})
      section.facts.push_back({path_words(static_cast<PathKind>(k)),
                               time_text(times[k]) + ", " + percent_words(share(times[k], document.trace().makespan)),
                               {}});
  return section;
}

Bytes largest_arena(const Summary& summary) {
  Bytes most = {};
  for (const StageMemory& stage : summary.memory) most = std::max(most, stage.with_framework);
  return most;
}

Facts run_facts(const Document& document) {
  const Summary& summary = document.summary;
  Facts facts{words("The whole iteration"), words("Click a bubble, an operation, a stage or a link to look into it."), {}, {}};
  if (!summary.feasible) facts.explained = too_much_words(summary);
  FactSection time{words("Time"), {{words("iteration"), time_text(to_nanoseconds(summary.iteration_time)), {}}}};
  if (document.result.period_s > 0)
    time.facts.push_back({"  " + words("one by itself, filled and drained"), time_text(document.trace().makespan), {}});
  if (const auto& interval = summary.prediction_interval) {
    time.facts.push_back({words("90 % interval"), QString::fromStdString(in_time_range(interval->low, interval->high)), {}});
    if (!interval->basis.empty()) time.facts.push_back({"  " + words("rests on"), QString::fromStdString(interval->basis), {}});
  }
  if (summary.tokens_per_s > 0) time.facts.push_back({rate_words(document), number_words(summary.tokens_per_s), {}});
  if (summary.flops.model_utilization > 0)
    time.facts.push_back({words("model FLOPs utilisation"), percent_words(summary.flops.model_utilization), {}});
  time.facts.push_back({words("idle"), percent_words(summary.bubble.fraction), {}});
  for (std::size_t c = 0; c < summary.bubble.by_cause.size(); ++c)
    if (summary.bubble.by_cause[c] > 0)
      time.facts.push_back({"  " + cause_words(static_cast<BubbleCause>(c)), percent_words(summary.bubble.by_cause[c]), {}});
  if (const double waiting = summary.bubble.by_cause.empty() ? 0 : summary.bubble.by_cause[kExposed];
      summary.communication.exposed > 0) {
    time.facts.push_back({words("communication not hidden"), percent_words(summary.communication.exposed), {}});
    const double in_line = summary.communication.exposed - waiting;
    if (in_line > 0) time.facts.push_back({"  " + words("in line with the compute"), percent_words(in_line), {}});
    if (waiting > 0) time.facts.push_back({"  " + words("waited for (idle)"), percent_words(waiting), {}});
  }
  facts.sections.push_back(std::move(time));
  if (FactSection path = path_section(document); !path.facts.empty()) facts.sections.push_back(std::move(path));
  if (const StageMemory* stage = fullest_stage(summary); stage != nullptr && summary.fit.capacity > Bytes{})
    facts.sections.push_back({words("Memory of a device"),
                              {{words("peak incl. framework"), peak_words(summary, *stage), {}},
                               {words("on"), role_words(stage->role), {}},
                               {words("reserved arena"), bytes_words(largest_arena(summary)), {}},
                               summary.fit.margin < Bytes{} ? Fact{words("over by"), bytes_words(-summary.fit.margin), {}}
                                                            : Fact{words("to spare"), bytes_words(summary.fit.margin), {}}}});
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
      if (known && at < document.trace().links.size()) return link_facts(document, document.trace().links[at], picked.link);
      break;
    case PickedKind::Action:
      if (known && at < document.trace().spans.size()) return action_facts(document, twin, picked);
      break;
    case PickedKind::Nothing: break;
  }
  return run_facts(document);
}

}  // namespace foreshard
