#include "gui/timeline/timeline_legend.h"

#include <QCoreApplication>
#include <algorithm>

#include "gui/document/words.h"

namespace foreshard {

std::vector<LegendEntry> legend_entries() {
  const auto words = [](const char* text) { return QCoreApplication::translate("foreshard::TimelineView", text); };
  const auto work = [](Paint paint, const char* letter, const QString& text) {
    return LegendEntry{false, paint, BubbleCause::WarmUp, letter, text};
  };
  std::vector<LegendEntry> entries = {
      work(Paint::Forward, "F", words(QT_TRANSLATE_NOOP("foreshard::TimelineView", "forward"))),
      work(Paint::Backward, "B", words(QT_TRANSLATE_NOOP("foreshard::TimelineView", "backward"))),
      work(Paint::WeightGradient, "W", words(QT_TRANSLATE_NOOP("foreshard::TimelineView", "weight gradient"))),
      work(Paint::Update, "U", words(QT_TRANSLATE_NOOP("foreshard::TimelineView", "update"))),
      work(Paint::InLine, "T", words(QT_TRANSLATE_NOOP("foreshard::TimelineView", "blocking collective"))),
      work(Paint::Transfer, "P", words(QT_TRANSLATE_NOOP("foreshard::TimelineView", "transfer"))),
      work(Paint::Collective, "C", words(QT_TRANSLATE_NOOP("foreshard::TimelineView", "collective"))),
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

}  // namespace foreshard
