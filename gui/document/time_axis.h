// TimeAxis: the range of time that linked views show, with its cursor and the selected range, in whole nanoseconds. Each view maps it
// to pixels itself.
#pragma once

#include <QObject>
#include <cstdint>
#include <optional>

#include "core/base/units.h"

namespace foreshard {

struct TimeRange {
  Nanoseconds begin = {}, end = {};
  Nanoseconds length() const { return end - begin; }
  bool operator==(const TimeRange&) const = default;
};

class TimeAxis : public QObject {
  Q_OBJECT

 public:
  explicit TimeAxis(QObject* parent = nullptr) : QObject(parent) {}

  TimeRange extent() const { return extent_; }  // the union of all shown traces
  TimeRange visible() const { return visible_; }
  std::optional<Nanoseconds> cursor() const { return cursor_; }
  std::optional<TimeRange> selected() const { return selected_; }

  void set_extent(TimeRange extent);             // if all of the old extent was visible, all of the new one is
  void show(TimeRange range);                    // clipped to the extent, never shorter than 10 ns
  void zoom(double factor, Nanoseconds anchor);  // factor > 1: zooms in; the anchor stays in place
  void pan(Nanoseconds by);
  void fit() { show(extent_); }
  void set_cursor(std::optional<Nanoseconds> when);
  void select(std::optional<TimeRange> range);

 Q_SIGNALS:
  void visible_changed();
  void cursor_changed();
  void selected_changed();
  void extent_changed();

 private:
  TimeRange extent_ = {{0}, {1}};
  TimeRange visible_ = {{0}, {1}};
  std::optional<Nanoseconds> cursor_ = {};
  std::optional<TimeRange> selected_ = {};
};

}  // namespace foreshard
