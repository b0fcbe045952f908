#include "gui/timeline/timeline_legend.h"

#include <QCoreApplication>
#include <QPainter>
#include <algorithm>

#include "gui/document/words.h"
#include "gui/timeline/timeline_paint.h"

namespace foreshard {

static constexpr double kHiddenOpacity = 0.45;  // of a legend entry: off, and still to be read

std::vector<LegendEntry> legend_entries() {
  const auto words = [](const char* text) { return QCoreApplication::translate("foreshard::TimelineView", text); };
  const auto work = [](Paint paint, const char* letter, const QString& text) {
    return LegendEntry{false, paint, BubbleCause::WarmUp, letter, text};
  };
  std::vector<LegendEntry> entries = {
      work(Paint::Forward, "F", words(QT_TRANSLATE_NOOP("foreshard::TimelineView", "forward"))),
      work(Paint::Backward, "B", words(QT_TRANSLATE_NOOP("foreshard::TimelineView", "backward"))),
      work(Paint::WeightGradient, "W", words(QT_TRANSLATE_NOOP("foreshard::TimelineView", "weight gradient"))),
      work(Paint::Both, "&", words(QT_TRANSLATE_NOOP("foreshard::TimelineView", "forward and backward"))),
      work(Paint::Update, "U", words(QT_TRANSLATE_NOOP("foreshard::TimelineView", "update"))),
      work(Paint::InLine, "T", words(QT_TRANSLATE_NOOP("foreshard::TimelineView", "blocking collective"))),
      work(Paint::Transfer, "P", words(QT_TRANSLATE_NOOP("foreshard::TimelineView", "transfer"))),
      work(Paint::Collective, "C", words(QT_TRANSLATE_NOOP("foreshard::TimelineView", "collective"))),
      work(Paint::Dispatch, "D", words(QT_TRANSLATE_NOOP("foreshard::TimelineView", "dispatch"))),
      work(Paint::Combine, "M", words(QT_TRANSLATE_NOOP("foreshard::TimelineView", "combine"))),
      work(Paint::Copy, "O", words(QT_TRANSLATE_NOOP("foreshard::TimelineView", "copy")))};
  for (int c = 0; c < kBubbleCauses; ++c) {
    const auto cause = static_cast<BubbleCause>(c);
    entries.push_back({true, Paint::Other, cause, {}, cause_words(cause)});
  }
  return entries;
}

Hidden toggled(Hidden hidden, const LegendEntry& entry) {
  if (entry.bubble)
    hidden.causes = static_cast<std::uint8_t>(hidden.causes ^ 1U << static_cast<unsigned>(entry.cause));
  else
    hidden.paints = static_cast<std::uint16_t>(hidden.paints ^ 1U << static_cast<unsigned>(entry.paint));
  return hidden;
}

Hidden only(Hidden hidden, const LegendEntry& entry) {
  Hidden rest = hidden;
  if (entry.bubble)
    rest.causes = static_cast<std::uint8_t>(((1U << kBubbleCauses) - 1) & ~(1U << static_cast<unsigned>(entry.cause)));
  else
    rest.paints = static_cast<std::uint16_t>(((1U << kPaints) - 1) & ~(1U << static_cast<unsigned>(entry.paint)));
  return rest == hidden ? Hidden{} : rest;
}

std::vector<QRectF> lay_legend(const std::vector<LegendEntry>& entries, double width,
                               const std::function<double(const QString&)>& width_of, bool one_line) {
  std::vector<QRectF> boxes;
  double x = 10, y = 1;
  for (const LegendEntry& entry : entries) {
    const double wide = (entry.bubble ? 27 : 20) + width_of(entry.words);
    if (x > 10 && x + wide > width - 6) x = 10, y += kLegendLine;
    boxes.emplace_back(x, y, wide, kLegendLine);
    x += wide + 14;
  }
  if (!one_line || boxes.empty() || boxes.back().top() == boxes.front().top()) return boxes;
  const double more = 12 + width_of("+99");
  std::size_t kept = 0;
  while (boxes[kept].top() == boxes.front().top() && boxes[kept].right() + 14 + more <= width - 6) ++kept;
  const QRectF last(kept == 0 ? 10 : boxes[kept - 1].right() + 14, boxes.front().top(), more, kLegendLine);
  for (std::size_t i = kept; i < boxes.size(); ++i) boxes[i] = {};
  boxes.push_back(last);
  return boxes;
}

void TimelineLegend::lay_out(int width, const QFont& font) {
  const QFontMetricsF metrics(small_font(font, 0.88));
  boxes_ = lay_legend(
      entries_, width, [&](const QString& text) { return metrics.horizontalAdvance(text); }, short_ && !open_);
}

int TimelineLegend::height() const { return shown_ && !boxes_.empty() ? static_cast<int>(boxes_.back().bottom()) + 2 : 0; }

QRectF TimelineLegend::box(std::size_t entry) const { return shown_ && entry < boxes_.size() ? boxes_[entry] : QRectF(); }

std::optional<std::size_t> TimelineLegend::entry_at(QPointF at) const {
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (box(i).contains(at)) return i;
  return {};
}

void TimelineLegend::paint_entry(QPainter& painter, const TimelineScene& scene, const LegendEntry& entry, QRectF place) const {
  const double scale = painter.device()->devicePixelRatioF();
  const bool hidden = entry.hidden_by(scene.paints.hidden);
  const QRectF box(place.left(), place.center().y() - 7, entry.bubble ? 22 : 15, 14);
  painter.setOpacity(hidden ? kHiddenOpacity : 1);
  if (entry.bubble) {
    QImage sample(QSize(22, 14) * scale, QImage::Format_RGB32);
    sample.fill(scene.theme.bubble);
    for (int y = 0; y < sample.height(); ++y)
      for (int x = 0; x < sample.width(); ++x)
        if (on_hatch(entry.cause, x, y, scale)) sample.setPixelColor(x, y, scene.theme.of(entry.cause));
    sample.setDevicePixelRatio(scale);
    painter.drawImage(box.topLeft(), sample);
  } else {
    const QColor colour = QColor::fromRgb(scene.paints.of({entry.paint, 0, false}));
    painter.fillRect(box, colour);
    painter.setPen(scene.theme.label_on(colour));
    painter.drawText(box, Qt::AlignCenter, entry.letter);
  }
  if (hidden) {
    painter.setBrush(Qt::NoBrush);
    painter.setPen(scene.theme.text);
    painter.drawRect(box.adjusted(0, 0, -1, -1));
  }
  painter.setPen(hidden ? scene.theme.text : scene.theme.faint);
  const QRectF words = place.adjusted(entry.bubble ? 27 : 20, 0, 8, 0);
  painter.drawText(words, Qt::AlignLeft | Qt::AlignVCenter, entry.words);
  if (hidden) painter.drawLine(QPointF(words.left(), words.center().y()), QPointF(words.right() - 8, words.center().y()));
  painter.setOpacity(1);
}

void TimelineLegend::paint(QPainter& painter, const TimelineScene& scene) const {
  const int top = scene.lanes.bottom() + 1, width = scene.size.width();
  painter.fillRect(QRect(0, top, width, scene.size.height() - top), scene.theme.panel);
  painter.setPen(scene.theme.rule);
  painter.drawLine(0, top, width, top);
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (const QRectF place = box(i); !place.isEmpty()) paint_entry(painter, scene, entries_[i], place.translated(0, top));
  if (const QRectF more = more_box(); !more.isEmpty()) {
    const auto seen = std::ranges::count_if(boxes_, [](const QRectF& place) { return !place.isEmpty(); }) - 1;
    painter.setPen(scene.theme.accent);
    painter.drawText(more.translated(0, top), Qt::AlignLeft | Qt::AlignVCenter,
                     QString("+%1").arg(std::ssize(entries_) - seen));
  }
}

}  // namespace foreshard
