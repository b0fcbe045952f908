#include "gui/document/timeline_labels.h"

#include <algorithm>
#include <cmath>

#include "gui/document/words.h"
#include "report/words/span_words.h"
#include "report/words/text_table.h"

namespace foreshard {

QString time_text(Nanoseconds time) {
  if (time.value >= 999'500'000'000) return count_words(std::llround(to_seconds(time).value)) + " s";
  return QString::fromStdString(in_short_time(to_seconds(time))).replace(" us", QString::fromUtf8(" \u00b5s"));
}

Nanoseconds nice_step(double least) {
  double step = 1;
  while (step * 10 <= least) step *= 10;
  for (const double times : {1.0, 2.0, 5.0, 10.0})
    if (step * times >= least) return {std::llround(step * times)};
  return {std::llround(step * 10)};
}

QString tick_text(Nanoseconds when, Nanoseconds step, Nanoseconds largest) {
  struct Unit {
    double ns;
    const char* name;
  };
  static constexpr Unit units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "\u00b5s"}, {1, "ns"}};
  const Unit* unit = &units[3];
  for (const Unit& u : units)
    if (static_cast<double>(std::max({std::abs(when.value), step.value, largest.value})) >= u.ns) {
      unit = &u;
      break;
    }
  const double digits = std::ceil(-std::log10(static_cast<double>(step.value) / unit->ns) - 1e-9);
  return QString::number(static_cast<double>(when.value) / unit->ns, 'f', std::clamp(static_cast<int>(digits), 0, 9)) + " " +
         QString::fromUtf8(unit->name);
}

std::vector<RulerMark> ruler_marks(TimeRange visible, double width, const TextWidth& width_of) {
  std::vector<RulerMark> marks;
  if (width < 1 || visible.length().value < 1) return marks;
  const double per_pixel = static_cast<double>(visible.length().value) / width;
  const Nanoseconds step = nice_step(per_pixel * 110), small = {std::max<std::int64_t>(step.value / 5, 1)};
  double free_from = 0;
  for (std::int64_t t = (visible.begin.value / small.value) * small.value; t <= visible.end.value; t += small.value) {
    const double x = static_cast<double>(t - visible.begin.value) / per_pixel;
    if (x < -0.5 || x > width + 1) continue;
    RulerMark& mark = marks.emplace_back(RulerMark{x, t % step.value == 0, {}, x + 4});
    if (!mark.major) continue;
    const QString text = tick_text({t}, step, visible.end);
    const double wide = width_of(text);
    if (mark.text_x + wide > width) mark.text_x = x - 4 - wide;
    if (mark.text_x < free_from) continue;
    mark.text = text;
    free_from = mark.text_x + wide + 6;
  }
  return marks;
}

namespace {

class LabelSearch {
 public:
  LabelSearch(const Document& document, const FrameView& view, const TextWidth& width_of)
      : document_(document), view_(view), width_of_(width_of) {}

  std::vector<FrameLabel> search(const std::vector<Row>& rows, const Twin* twin) {
    for (const Row& row : rows) {
      const int top = row.top - view_.scroll;
      if (top + row.height <= 0) continue;
      if (top >= view_.height || labels_.size() >= kMostLabels) break;
      for (const LaneBox& box : lane_boxes(row, twin != nullptr)) {
        if (box.height < kLeastLabelHeight) continue;
        if (box.kind == BoxKind::Compute && row.members.size() == 1) label(row.shown(), top + box.top, box.height);
        if (box.kind == BoxKind::Worst) label(row.worst, top + box.top, box.height);
        if (row.members.size() != 1) continue;
        if (box.kind == BoxKind::Measured && row.shown().index() < twin->of_class.size())
          measured(*twin, twin->of_class[row.shown().index()], top + box.top, box.height);
      }
    }
    return std::move(labels_);
  }

 private:
  double x_of(std::int64_t when) const {
    return static_cast<double>(when - view_.visible.begin.value) * view_.width /
           static_cast<double>(view_.visible.length().value);
  }

  void label(ClassId who, int top, int height) {
    top_ = top;
    height_ = height;
    if (const Lane* lane = document_.lanes.find(who, LaneKind::Compute)) cells(*lane);
    bubbles(who);
  }

  void measured(const Twin& twin, ClassId who, int top, int height) {
    const Lane* lane = twin.measured->lanes.find(who, LaneKind::Compute);
    if (lane == nullptr) return;
    LabelSearch there(*twin.measured, view_, width_of_);
    there.top_ = top;
    there.height_ = height;
    there.cells(*lane);
    labels_.insert(labels_.end(), there.labels_.begin(), there.labels_.end());
  }

  void cells(const Lane& lane) {
    const std::int64_t t0 = view_.visible.begin.value, t1 = view_.visible.end.value;
    std::size_t i = lane.first_after(t0);
    while (i > 0 && i < lane.size() && !lane.look_of(i).first) --i;
    while (i < lane.size() && lane.begin[i] < t1 && labels_.size() < kMostLabels) {
      std::size_t next = i + 1;
      while (next < lane.size() && !lane.look_of(next).first) ++next;
      if (lane.end[next - 1] > t0) cell(lane, i, next);
      i = next;
    }
  }

  void cell(const Lane& lane, std::size_t first, std::size_t end) {
    const double from = std::max(x_of(lane.begin[first]), 0.0), to = std::min(x_of(lane.end[end - 1]), view_.width * 1.0);
    if (to - from < 9) return;
    const double span_width = (x_of(lane.end[end - 1]) - x_of(lane.begin[first])) / static_cast<double>(end - first);
    if (end - first > 1 && span_width >= 34) return spans(lane, first, end);
    const Span& span = document_.trace().spans[static_cast<std::size_t>(lane.span[first])];
    const Action& action = action_of(document_.plan(), document_.trace(), span);
    const QString time = time_text({lane.end[end - 1] - lane.begin[first]});
    for (const QString& text : names(action, time))
      if (put(from, to, text, lane.look_of(first))) return;
  }

  // From the longest to the shortest.
  std::vector<QString> names(const Action& action, const QString& time) const {
    if (action.does.empty()) {
      const QString name = QString::fromStdString(document_.plan().segments[action.segment.index()].name);
      return {name + "  " + time, name};
    }
    const Does& does = action.does.front();
    const QString letter = QString::fromLatin1(letter_of(does.work));
    if (does.work == Work::Update) return {QString::fromStdString(action_name(document_.plan(), action)) + "  " + time, letter};
    const QString number = does.microbatch < 0 ? QString() : QString::number(does.microbatch);
    const QString all = QString::fromStdString(action_name(document_.plan(), action));
    return {all + "  " + time, all, letter + number, number.isEmpty() ? letter : number};
  }

  void spans(const Lane& lane, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end && labels_.size() < kMostLabels; ++i) {
      if (lane.end[i] <= view_.visible.begin.value || lane.begin[i] >= view_.visible.end.value) continue;
      const Span& span = document_.trace().spans[static_cast<std::size_t>(lane.span[i])];
      const Role& role = role_of(document_.plan(), document_.trace(), span.who);
      const Instruction& instruction = instruction_of(document_.plan(), document_.trace(), span);
      const std::string& name = span.count > 1 && instruction.layer.valid() && instruction.layer.index() < role.layers.size()
                                    ? role.layers[instruction.layer.index()]
                                    : instruction.name;
      const double from = std::max(x_of(lane.begin[i]), 0.0), to = std::min(x_of(lane.end[i]), view_.width * 1.0);
      const QString text = instruction_words(name);
      if (!put(from, to, text + "  " + time_text(span.end - span.begin), lane.look_of(i))) put(from, to, text, lane.look_of(i));
    }
  }

  void bubbles(ClassId who) {
    if (!who.valid() || who.index() + 1 >= document_.lanes.first_bubble.size()) return;
    const auto first = document_.bubbles.begin() + document_.lanes.first_bubble[who.index()],
               last = document_.bubbles.begin() + document_.lanes.first_bubble[who.index() + 1];
    auto next = std::upper_bound(first, last, view_.visible.begin, [](Nanoseconds t, const Bubble& b) { return t < b.end; });
    for (; next != last && next->begin < view_.visible.end; ++next) {
      const Bubble& bubble = *next;
      if (labels_.size() >= kMostLabels) return;
      const double from = std::max(x_of(bubble.begin.value), 0.0), to = std::min(x_of(bubble.end.value), view_.width * 1.0);
      if (to - from < 40) continue;
      const QString time = time_text(bubble.end - bubble.begin);
      if (put(from, to, cause_words(bubble.cause) + "  " + time, {}, 26) || put(from, to, time, {}, 12)) {
        labels_.back().bubble = true;
        labels_.back().cause = bubble.cause;
      }
    }
  }

  bool put(double from, double to, const QString& text, Look under, double room = 5) {
    if (text.isEmpty() || width_of_(text) + room > to - from) return false;
    labels_.push_back({{from, static_cast<double>(top_), to - from, static_cast<double>(height_)}, text, under, false, {}});
    return true;
  }

  const Document& document_;
  const FrameView& view_;
  const TextWidth& width_of_;
  int top_ = 0, height_ = 0;
  std::vector<FrameLabel> labels_ = {};
};

}  // namespace

std::vector<FrameLabel> frame_labels(const Document& document, const std::vector<Row>& rows, const Twin* twin,
                                     const FrameView& view, const TextWidth& width_of) {
  if (view.width < 1 || view.visible.length().value < 1) return {};
  return LabelSearch(document, view, width_of).search(rows, twin);
}

}  // namespace foreshard
