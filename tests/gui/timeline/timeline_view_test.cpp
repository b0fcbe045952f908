#include "gui/timeline/timeline_view.h"

#include <gtest/gtest.h>

#include <QSignalSpy>
#include <QTest>
#include <QWheelEvent>

#include "tests/gui/documents.h"

namespace foreshard::timeline_view_test {
namespace {

struct Window : Viewed<TimelineView> {
  Window() : Viewed(pipeline_document(), {kHeaderWidth + 600 + kGutterWidth, 240}) {
    view.show();
    QTest::qWait(1);
    view.wait_for_levels();
  }
  QPoint middle_of(Picked picked) const { return view.place_of(picked).center().toPoint(); }
  void wheel(QPoint at, int notches, Qt::KeyboardModifiers modifiers) {
    QWheelEvent event(at, view.mapToGlobal(at), {}, {0, notches * 120}, Qt::NoButton, modifiers, Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(&view, &event);
  }
};

TEST(TimelineView, WhatIsDrawnAtAPlaceIsHitThere) {
  Window window;
  int spans = 0;
  for (std::size_t s = 0; s < window.document->trace().spans.size(); ++s) {
    const Picked span = {PickedKind::Span, static_cast<std::int32_t>(s), {}};
    const QRectF place = window.view.place_of(span);
    if (place.width() < 4 || place.height() < 3) continue;
    const Picked hit = window.view.hit(place.center().toPoint());
    ++spans;
    if (hit == span) continue;
    // Only where transfers of one class overlap does another one lie on top.
    ASSERT_EQ(hit.kind, PickedKind::Span);
    const Span &wanted = window.document->trace().spans[s],
               &found = window.document->trace().spans[static_cast<std::size_t>(hit.index)];
    EXPECT_EQ(found.who, wanted.who);
    EXPECT_NE(wanted.stream.value, 0);
    EXPECT_TRUE(found.begin < wanted.end && wanted.begin < found.end);
  }
  EXPECT_GT(spans, 60);  // 4 stages, 8 forwards and 8 backwards
  for (std::size_t b = 0; b < window.document->bubbles.size(); ++b) {
    const Picked bubble = {PickedKind::Bubble, static_cast<std::int32_t>(b), {}};
    if (window.view.place_of(bubble).width() < 4) continue;
    EXPECT_EQ(window.view.hit(window.middle_of(bubble)), bubble);
  }
}

TEST(TimelineView, AClickPicksAndADragSelectsTime) {
  Window window;
  const Picked last = {PickedKind::Span, window.document->critical.back().span, {}};
  QTest::mouseClick(&window.view, Qt::LeftButton, {}, window.middle_of({PickedKind::Bubble, 1, {}}));
  EXPECT_EQ(window.selection.picked(), (Picked{PickedKind::Bubble, 1, {}}));
  QTest::mousePress(&window.view, Qt::LeftButton, {}, {kHeaderWidth + 100, 60});
  QTest::mouseMove(&window.view, {kHeaderWidth + 400, 60});
  QTest::mouseRelease(&window.view, Qt::LeftButton, {}, {kHeaderWidth + 400, 60});
  ASSERT_TRUE(window.axis.selected());
  // 300 of 600 pixels: half of the makespan, to a pixel.
  EXPECT_NEAR(static_cast<double>(window.axis.selected()->length().value),
              static_cast<double>(window.document->trace().makespan.value) / 2,
              static_cast<double>(window.document->trace().makespan.value) / 600);
  const TimeRange selected = *window.axis.selected();
  QTest::keyClick(&window.view, Qt::Key_Z);
  EXPECT_EQ(window.axis.visible(), selected);
  EXPECT_TRUE(last.index >= 0);
}

TEST(TimelineView, ControlAndWheelKeepThePointUnderTheMouse) {
  Window window;
  const QPoint at(kHeaderWidth + 150, 80);
  window.wheel(at, 3, Qt::ControlModifier);
  const TimeRange close = window.axis.visible();
  EXPECT_LT(close.length(), window.axis.extent().length());
  // The point stood at a quarter of the whole; it still stands at a quarter of what is visible, to a pixel.
  const double quarter = static_cast<double>(window.axis.extent().length().value) / 4;
  const double now = static_cast<double>(close.begin.value) + static_cast<double>(close.length().value) / 4;
  EXPECT_NEAR(now, quarter, static_cast<double>(close.length().value) / 600);
  window.wheel(at, -1, Qt::ShiftModifier);
  EXPECT_GT(window.axis.visible().begin, close.begin);
  EXPECT_EQ(window.axis.visible().length(), close.length());
}

TEST(TimelineView, KeysMoveThroughTimeAndWork) {
  Window window;
  QSignalSpy moved(&window.axis, &TimeAxis::visible_changed);
  QTest::keyClick(&window.view, Qt::Key_W);
  EXPECT_EQ(moved.count(), 1);
  QTest::keyClick(&window.view, Qt::Key_Right);
  EXPECT_EQ(moved.count(), 2);
  QTest::keyClick(&window.view, Qt::Key_0);
  EXPECT_EQ(window.axis.visible(), window.axis.extent());
  QTest::keyClick(&window.view, Qt::Key_N);
  const Picked worst = window.selection.picked();
  ASSERT_EQ(worst.kind, PickedKind::Bubble);
  const auto size = [&](std::int32_t b) {
    return window.document->bubbles[static_cast<std::size_t>(b)].end -
           window.document->bubbles[static_cast<std::size_t>(b)].begin;
  };
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(window.document->bubbles.size()); ++b)
    EXPECT_LE(size(b), size(worst.index));
  QTest::keyClick(&window.view, Qt::Key_BracketRight);
  EXPECT_EQ(window.selection.picked().index, worst.index + 1);
  QTest::keyClick(&window.view, Qt::Key_BracketLeft);
  EXPECT_EQ(window.selection.picked(), worst);
}

TEST(TimelineView, TheChainIsFollowedBackAndReturned) {
  Window window;
  const Picked last = {PickedKind::Span, window.document->critical.back().span, {}};
  window.selection.pick(last);
  QTest::keyClick(&window.view, Qt::Key_Return);
  EXPECT_EQ(window.selection.picked().index, window.document->bindings[static_cast<std::size_t>(last.index)].before);
  QTest::keyClick(&window.view, Qt::Key_Backspace);
  EXPECT_EQ(window.selection.picked(), last);
  QTest::keyClick(&window.view, Qt::Key_Backspace);
  EXPECT_EQ(window.selection.picked(), last);
}

TEST(TimelineView, AHeaderOpensItsGroup) {
  Window window;
  ASSERT_EQ(window.view.rows().size(), 4u);
  QTest::mouseClick(&window.view, Qt::LeftButton, {}, {20, 26 + window.view.rows()[0].height / 2});
  EXPECT_EQ(window.view.rows().size(), 6u);
  EXPECT_TRUE(window.view.rows()[1].key.rank.valid());
  window.view.set_grouping(Grouping::DataParallel);
  EXPECT_EQ(window.view.rows().size(), 2u);
}

TEST(TimelineView, TheSamePictureTwiceAndAnotherInAnotherTheme) {
  Window window;
  const QImage first = window.view.grab().toImage(), second = window.view.grab().toImage();
  EXPECT_EQ(first, second);
  window.view.set_theme(theme_of(ThemeName::Light));
  EXPECT_NE(window.view.grab().toImage(), first);
  window.view.set_theme(theme_of(ThemeName::Dark));
  window.view.wait_for_levels();
  EXPECT_EQ(window.view.grab().toImage(), first);
  EXPECT_FALSE(window.view.accessibleName().isEmpty());
}

TEST(TimelineView, WithoutADocumentNothingBreaks) {
  TimeAxis axis;
  Selection selection;
  TimelineView view(axis, selection);
  view.resize(500, 200);
  for (const int key :
       {Qt::Key_N, Qt::Key_Period, Qt::Key_BracketRight, Qt::Key_Return, Qt::Key_F, Qt::Key_P, Qt::Key_Space, Qt::Key_M})
    QTest::keyClick(&view, static_cast<Qt::Key>(key));
  QTest::mouseClick(&view, Qt::LeftButton, {}, {300, 100});
  EXPECT_FALSE(view.grab().isNull());
  view.set_document(pipeline_document());
  selection.pick({PickedKind::Bubble, 100'000, {}});  // of a document that was there before
  view.worst_bubble();
  EXPECT_FALSE(view.grab().isNull());
}

}  // namespace
}  // namespace foreshard::timeline_view_test
