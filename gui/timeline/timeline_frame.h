// The rows of the timeline as an image without marks and cursor, kept until something in it changes, and the levels of detail that it is drawn
// from, which a worker makes.
#pragma once

#include <QFutureWatcher>
#include <QImage>
#include <functional>
#include <memory>

#include "gui/timeline/timeline_scene.h"

namespace foreshard {

// [bin] of the whole time: share of all ranks that compute, 0..1.
std::vector<float> busy_by_bin(const Document& document, const Paints& paints, std::size_t bins);

class TimelineFrame {
 public:
  explicit TimelineFrame(std::function<void()> made);  // is called when levels have been made

  void make_levels_of(const TimelineScene& scene);                                       // of its document and paints
  void wait_for_levels(const TimelineScene& scene);                                      // for pictures
  const std::vector<float>* busy() const { return levels_ ? &levels_->busy : nullptr; }  // busy_by_bin; null: still being made

  void forget() { image_ = {}; }
  void changed() { stale_ = true; }
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
