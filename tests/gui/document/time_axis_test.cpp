#include "gui/document/time_axis.h"

#include <gtest/gtest.h>

#include <QSignalSpy>

namespace foreshard::time_axis_test {

static TimeRange range(std::int64_t begin, std::int64_t end) { return {{begin}, {end}}; }

TEST(TimeAxis, ZoomKeepsTheAnchorInItsPlace) {
  TimeAxis axis;
  axis.set_extent(range(0, 1'000'000));
  axis.zoom(4, {250'000});
  // The anchor stood at a quarter; a quarter of the new length of 250,000 lies before it.
  EXPECT_EQ(axis.visible(), range(187'500, 437'500));
  axis.zoom(0.25, {250'000});
  EXPECT_EQ(axis.visible(), range(0, 1'000'000));
}

TEST(TimeAxis, StaysInsideItsExtentAndAboveItsShortest) {
  TimeAxis axis;
  axis.set_extent(range(100, 1'100));
  axis.show(range(-500, -300));
  EXPECT_EQ(axis.visible(), range(100, 300));
  axis.pan({5'000});
  EXPECT_EQ(axis.visible(), range(900, 1'100));
  axis.show(range(500, 501));
  EXPECT_EQ(axis.visible(), range(500, 510));
  axis.zoom(0.0001, {500});
  EXPECT_EQ(axis.visible(), axis.extent());
}

TEST(TimeAxis, SaysOnlyWhatChanged) {
  TimeAxis axis;
  axis.set_extent(range(0, 1'000));
  QSignalSpy visible(&axis, &TimeAxis::visible_changed), cursor(&axis, &TimeAxis::cursor_changed);
  axis.show(range(0, 1'000));
  axis.set_cursor({});
  EXPECT_EQ(visible.count() + cursor.count(), 0);
  axis.show(range(10, 100));
  axis.set_cursor(Nanoseconds{5});
  EXPECT_EQ(visible.count(), 1);
  EXPECT_EQ(cursor.count(), 1);
}

TEST(TimeAxis, AWholeViewStaysWholeWhenTheExtentGrows) {
  TimeAxis axis;
  axis.set_extent(range(0, 1'000));
  axis.set_extent(range(0, 2'000));
  EXPECT_EQ(axis.visible(), range(0, 2'000));
  axis.show(range(100, 200));
  axis.set_extent(range(0, 3'000));
  EXPECT_EQ(axis.visible(), range(100, 200));
}

}  // namespace foreshard::time_axis_test
