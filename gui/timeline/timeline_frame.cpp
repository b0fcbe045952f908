#include "gui/timeline/timeline_frame.h"

#include <QPainter>
#include <QtConcurrent>
#include <algorithm>

#include "gui/document/background.h"
#include "gui/timeline/timeline_paint.h"

namespace foreshard {

static constexpr std::size_t kOverviewBins = 2048;

// More than can be drawn within a frame wait for their levels of detail, a tenth of a second.
static constexpr std::size_t kSlicesAtOnce = 300'000;

static std::size_t slices_of(const Document& document) {
  std::size_t slices = 0;
  for (const Lane& lane : document.lanes.all) slices += lane.size();
  return slices;
}

std::vector<float> busy_by_bin(const Document& document, const Paints& paints, std::size_t bins) {
  std::vector<Sums> line(bins);
  const TimeRange whole = {{0}, std::max(document.trace().makespan, Nanoseconds{1})};
  double ranks = 0;
  for (const RankClass& c : document.trace().classes) ranks += static_cast<double>(c.members.size());
  for (const Lane& lane : document.lanes.all)
    if (lane.kind == LaneKind::Compute) {
      const double share =
          static_cast<double>(document.trace().classes[lane.who.index()].members.size()) / std::max(ranks, 1.0);
      add_slices(lane, whole, paints, static_cast<float>(share), line);
    }
  std::vector<float> busy(bins);
  for (std::size_t i = 0; i < bins; ++i) busy[i] = std::min(line[i][3], 1.0F);
  return busy;
}

TimelineFrame::TimelineFrame(std::function<void()> made) {
  QObject::connect(&making_, &QFutureWatcherBase::finished, &making_, [this, made = std::move(made)] {
    take_levels();
    made();
  });
}

// Until the worker is done every slice is drawn; for a small result that is as fast.
void TimelineFrame::make_levels_of(const TimelineScene& scene) {
  levels_.reset();
  if (!scene.document) return;
  making_.setFuture(QtConcurrent::run(guarded([document = scene.document, paints = scene.paints] {
    const TimeRange whole = {{0}, std::max(document->trace().makespan, Nanoseconds{1})};
    return std::shared_ptr<const Levels>(std::make_shared<Levels>(
        Levels{make_levels(document->lanes, whole, paints), busy_by_bin(*document, paints, kOverviewBins)}));
  })));
}

void TimelineFrame::take_levels() {
  levels_ = making_.result();
  stale_ = true;
}

void TimelineFrame::wait_for_levels(const TimelineScene& scene) {
  if (!scene.document || levels_) return;
  making_.waitForFinished();
  take_levels();
}

void TimelineFrame::refresh(const TimelineScene& scene, double pixel_ratio, const QFont& words) {
  const FrameView view = {scene.axis.visible(), scene.lanes.width(), scene.lanes.height(), scene.scroll, pixel_ratio};
  if (!stale_ && view == of_) return;
  if (!levels_ && making_.isRunning() && slices_of(*scene.document) > kSlicesAtOnce) return;
  const FrameSources sources = {scene.document.get(), levels_ ? &levels_->lanes : nullptr, scene.twin.get(), scene.theme,
                                scene.paints};
  image_ = draw_frame(sources, scene.rows, view);
  of_ = view;
  stale_ = false;
  if (image_.isNull()) return;
  QPainter painter(&image_);
  painter.setFont(words);
  paint_labels(scene, painter);
}

void TimelineFrame::paint_labels(const TimelineScene& scene, QPainter& painter) const {
  const QFontMetricsF metrics(painter.font());
  const auto width_of = [&](const QString& text) { return metrics.horizontalAdvance(text); };
  for (const FrameLabel& label : frame_labels(*scene.document, scene.rows, scene.twin.get(), of_, width_of)) {
    if (label.bubble ? scene.paints.hidden.has(label.cause) : scene.paints.hidden.has(label.under.paint)) continue;
    if (label.bubble) {
      const double width = metrics.horizontalAdvance(label.text) + 10,
                   height = std::min(label.box.height() - 2, metrics.height());
      const QRectF plate(label.box.center().x() - width / 2, label.box.center().y() - height / 2, width, height);
      painter.setPen(Qt::NoPen);
      painter.setBrush(with_alpha(scene.theme.background, 215));
      painter.drawRoundedRect(plate, 3, 3);
      painter.setPen(scene.theme.name == ThemeName::HighContrast ? scene.theme.text : scene.theme.of(label.cause));
    } else {
      painter.setPen(scene.theme.label_on(QColor::fromRgb(scene.paints.of(label.under))));
    }
    painter.drawText(label.box, Qt::AlignCenter, label.text);
  }
}

}  // namespace foreshard
