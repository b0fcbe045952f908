// TimelineFrame: a cached image of the timeline's rows with their labels, without marks and cursor. It is redrawn when something in it
// changes. A worker thread makes the levels of detail that it is drawn from.
#pragma once

#include <QFutureWatcher>
#include <QImage>
#include <functional>
#include <memory>

#include "gui/timeline/timeline_scene.h"

namespace foreshard {

// The share of ranks that compute, 0..1, for each of `bins` equal parts of the run.
std::vector<float> busy_by_bin(const Document& document, const Paints& paints, std::size_t bins);

class TimelineFrame {
 public:
  explicit TimelineFrame(std::function<void()> made);  // called when the levels of detail are ready

  void make_levels_of(const TimelineScene& scene);   // starts a worker thread for the document and paints of the scene
  void wait_for_levels(const TimelineScene& scene);  // blocks until they are ready; for screenshots
  const std::vector<float>* busy() const { return levels_ ? &levels_->busy : nullptr; }  // busy_by_bin; null: still being made

  void forget() { image_ = {}; }
  void changed() { stale_ = true; }  // the next refresh draws anew
  void refresh(const TimelineScene& scene, double pixel_ratio, const QFont& words);
  const QImage& image() const { return image_; }

 private:
  struct Levels {
    std::vector<LaneLevels> lanes = {};
    std::vector<float> busy = {};
  };
  void take_levels();
  void paint_labels(const TimelineScene& scene, QPainter& painter) const;

  std::shared_ptr<const Levels> levels_ = {};  // shared with the worker that makes them; null: still being made
  QFutureWatcher<std::shared_ptr<const Levels>> making_;
  QImage image_ = {};
  FrameView of_ = {};
  bool stale_ = true;
};

}  // namespace foreshard
