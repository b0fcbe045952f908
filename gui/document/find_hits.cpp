#include "gui/document/find_hits.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "gui/document/picked_range.h"
#include "gui/document/words.h"
#include "report/tables/stage_tables.h"
#include "report/words/span_words.h"
#include "report/words/text_table.h"

namespace foreshard {

namespace {

std::string folded(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// How the query occurs in the text: 2: as a whole word, 1: inside a word, 0: not at all.
int fit(const std::string& query, const std::string& text) {
  const std::size_t at = text.find(query);
  if (at == std::string::npos) return 0;
  const auto word = [&](std::size_t i) { return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0; };
  return (at == 0 || !word(at - 1)) && !word(at + query.size()) ? 2 : 1;
}

std::string at_text(Nanoseconds when) { return in_short_time({static_cast<double>(when.value) * 1e-9}); }

class Finding {
 public:
  Finding(const Document& document, std::string query, std::size_t most)
      : document_(document), query_(std::move(query)), most_(most) {}

  std::vector<FindHit> hits() {
    classes();
    links();
    bubbles();
    spans();
    std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<FindHit> hits;
    for (auto& [score, hit] : found_)
      if (hits.size() < most_) hits.push_back(std::move(hit));
    return hits;
  }

 private:
  void add(int score, FindHit hit) {
    if (score > 0) found_.emplace_back(score, std::move(hit));
  }

  void classes() {
    const Trace& trace = document_.trace();
    int rank = -1;
    if (query_.starts_with("rank ") && query_.size() < 15)
      rank = static_cast<int>(std::strtol(query_.c_str() + 5, nullptr, 10));
    for (std::size_t i = 0; i < trace.classes.size(); ++i) {
      const ClassId who{static_cast<std::int32_t>(i)};
      const std::string name = class_name(document_.plan(), trace, who);
      const Picked picked = {.kind = PickedKind::Class, .index = who.value};
      add(fit(query_, folded(name)) * 10, {name, "", picked, {{0}, trace.makespan}});
      const auto& members = trace.classes[i].members;
      if (rank >= 0 && std::find(members.begin(), members.end(), RankId{rank}) != members.end())
        add(30, {"rank " + std::to_string(rank), name, {PickedKind::Class, who.value, RankId{rank}}, {{0}, trace.makespan}});
    }
  }

  void links() {
    const auto& links = document_.trace().links;
    for (std::size_t i = 0; i < links.size(); ++i)
      add(fit(query_, folded(links[i].name)) * 5, {links[i].name,
                                                   "link",
                                                   {.kind = PickedKind::Link, .index = static_cast<std::int32_t>(i)},
                                                   {{0}, document_.trace().makespan}});
  }

  // Which causes are meant, as the views call them: in the language of the window or in that of the reports.
  std::array<bool, kBubbleCauses> causes_meant() const {
    std::array<bool, kBubbleCauses> meant = {};
    for (int c = 0; c < kBubbleCauses; ++c) {
      const auto cause = static_cast<BubbleCause>(c);
      const std::string shown = folded("bubble " + cause_words(cause).toStdString());
      meant[static_cast<std::size_t>(c)] = fit(query_, shown) > 0 || fit(query_, "bubble " + words_of(cause)) > 0;
    }
    return meant;
  }

  void bubbles() {
    const auto meant = causes_meant();
    std::vector<std::int32_t> order;
    for (std::size_t i = 0; i < document_.bubbles.size(); ++i)
      if (meant[static_cast<std::size_t>(document_.bubbles[i].cause)]) order.push_back(static_cast<std::int32_t>(i));
    const auto length = [&](std::int32_t i) {
      const Bubble& b = document_.bubbles[static_cast<std::size_t>(i)];
      return (b.end - b.begin).value;
    };
    const std::size_t keep = std::min(order.size(), std::min<std::size_t>(most_, 20));
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(keep), order.end(),
                      [&](std::int32_t a, std::int32_t b) { return length(a) > length(b); });
    order.resize(keep);
    for (const std::int32_t i : order) {
      const Bubble& b = document_.bubbles[static_cast<std::size_t>(i)];
      add(8, {"bubble: " + cause_words(b.cause).toStdString() + ", " + in_short_time({static_cast<double>(length(i)) * 1e-9}),
              class_name(document_.plan(), document_.trace(), b.who) + " at " + at_text(b.begin),
              {.kind = PickedKind::Bubble, .index = i},
              {b.begin, b.end}});
    }
  }

  // The first of each name and class: a million spans have few names.
  void spans() {
    const Plan& plan = document_.plan();
    const Trace& trace = document_.trace();
    std::set<std::pair<std::string, std::int32_t>> seen;
    for (std::size_t i = 0; i < trace.spans.size() && seen.size() < 4 * most_; ++i) {
      const Span& span = trace.spans[i];
      const Action& action = action_of(plan, trace, span);
      const Instruction& instruction = instruction_of(plan, trace, span);
      const Role& role = role_of(plan, trace, span.who);
      const std::string act = action_name(plan, action);
      std::string name = instruction.name;
      if (instruction.layer.value >= 0 && instruction.layer.index() < role.layers.size())
        name += " " + role.layers[instruction.layer.index()];
      const int score = std::max(fit(query_, folded(name)) * 3, query_ == folded(act) ? 12 : 0);
      const bool whole = query_ == folded(act);  // the action, not its first operation
      if (score == 0 || !seen.emplace(act + "/" + (whole ? "" : name), span.who.value).second) continue;
      Picked picked = {.kind = whole ? PickedKind::Action : PickedKind::Span, .index = static_cast<std::int32_t>(i)};
      if (whole) picked.index = computing_part(picked.index);
      const TimeRange range = range_of(document_, picked).value_or(TimeRange{span.begin, span.end});
      add(score, {whole ? act + ", " + in_short_time(to_seconds(range.length())) : act + ": " + name,
                  class_name(plan, trace, span.who) + " at " + at_text(range.begin), picked, range});
    }
  }

  // Of the spans of an action the first on a compute stream: its transfers lie on streams of their own.
  std::int32_t computing_part(std::int32_t first) const {
    const std::vector<Span>& spans = document_.trace().spans;
    const Span& from = spans[static_cast<std::size_t>(first)];
    const auto all = std::ranges::equal_range(spans, from.who, {}, &Span::who);
    for (const Span& span : all)
      if (span.action == from.action &&
          role_of(document_.plan(), document_.trace(), span.who).streams[span.stream.index()].kind == StreamKind::Compute)
        return static_cast<std::int32_t>(&span - spans.data());
    return first;
  }

  const Document& document_;
  std::string query_;
  std::size_t most_;
  std::vector<std::pair<int, FindHit>> found_ = {};
};

}  // namespace

std::vector<FindHit> find_hits(const Document& document, const std::string& query, std::size_t most) {
  std::string words = folded(query);
  while (!words.empty() && words.back() == ' ') words.pop_back();
  if (words.empty()) return {};
  return Finding(document, words, most).hits();
}

}  // namespace foreshard
