#include "gui/document/timeline_frame.h"

#include <gtest/gtest.h>

#include <set>

#include "gui/document/binding_arrows.h"
#include "gui/document/picked_range.h"
#include "gui/document/timeline_labels.h"
#include "report/words/span_words.h"
#include "tests/gui/documents.h"

namespace foreshard::timeline_frame_test {
namespace {

struct Scene {
  std::shared_ptr<const Document> document = pipeline_document();
  std::vector<Row> rows = {};
  FrameSources sources = {};
  FrameView view = {};

  explicit Scene(ThemeName theme, int row_height = 24) {
    rows = lay_rows(group_ranks(*document, Grouping::Stage), {.row_height = row_height}, 1, false);
    sources = {.document = document.get(), .theme = theme_of(theme), .paints = paints_of(theme_of(theme))};
    view = {{{0}, document->trace().makespan}, 300, 4 * row_height, 0, 1};
  }
  QImage draw() const { return draw_frame(sources, rows, view); }
};

TEST(TimelineFrame, BoxesLieInTheirRowWithoutOverlap) {
  for (int height = 1; height <= 90; ++height)
    for (const bool twin : {false, true})
      for (const std::int32_t worst : {-1, 3}) {
        int top = 0;
        for (const LaneBox& box : lane_boxes({.worst = {worst}, .height = height}, twin)) {
          EXPECT_GE(box.top, top) << height;
          EXPECT_GE(box.height, 0) << height;
          top = box.top + box.height;
        }
        EXPECT_LE(top, height);
      }
}

TEST(TimelineFrame, ThePictureIsTheSameEverywhere) {
  // Hashes of the pixels, looked at when they were taken; no font, no platform and no level of detail has a part in them.
  EXPECT_EQ(hash_of(Scene(ThemeName::Dark).draw()), "5323a7e10e2ccb4c");
  EXPECT_EQ(hash_of(Scene(ThemeName::Light).draw()), "c71fffc72213b0c0");
  EXPECT_EQ(hash_of(Scene(ThemeName::HighContrast).draw()), "03a6010efac7b792");
  Scene big(ThemeName::Dark);
  big.view.scale = 2;
  EXPECT_EQ(hash_of(big.draw()), "752f5801285e9b73");
  Scene low(ThemeName::Dark, 1);
  EXPECT_EQ(hash_of(low.draw()), "6ea69a56045f7686");
}

TEST(TimelineFrame, ManyRowsPaintedAtOnceAreTheSame) {
  Scene one(ThemeName::Dark, 2);
  std::vector<Row> many;
  for (int i = 0; i < 400; ++i) {
    many.push_back(one.rows[static_cast<std::size_t>(i % 4)]);
    many.back().top = 2 * i;
  }
  const QImage few = one.draw();
  FrameView view = one.view;
  view.height = 800;
  const QImage all = draw_frame(one.sources, many, view);
  for (int y = 0; y < 800; ++y)
    for (int x = 0; x < view.width; ++x) ASSERT_EQ(all.pixel(x, y), few.pixel(x, y % 8)) << x << ", " << y;
}

TEST(TimelineFrame, ACellHasItsColourAndIdleTimeItsTint) {
  Scene scene(ThemeName::Dark);
  const QImage image = scene.draw();
  // Stage 0 computes F0 from the start; the last stage waits meanwhile.
  EXPECT_EQ(image.pixel(2, 5), scene.sources.paints.of({Paint::Forward, 0, true}));
  std::set<QRgb> idle;
  for (int x = 0; x < 10; ++x) idle.insert(image.pixel(x, 3 * 24 + 5));
  EXPECT_FALSE(idle.contains(scene.sources.paints.of({Paint::Forward, 0, true})));
  EXPECT_GE(idle.size(), 2u) << "tint and strokes";
}

TEST(TimelineFrame, EveryCauseHasItsOwnHatch) {
  std::set<std::vector<bool>> patterns;
  for (int c = 0; c < kBubbleCauses; ++c) {
    std::vector<bool> pattern;
    for (int y = 0; y < 28; ++y)
      for (int x = 0; x < 28; ++x) pattern.push_back(on_hatch(static_cast<BubbleCause>(c), x, y, 1));
    const auto strokes = std::count(pattern.begin(), pattern.end(), true);
    EXPECT_GT(strokes, 0);
    EXPECT_LT(strokes, 28 * 28 / 2);
    patterns.insert(pattern);
  }
  EXPECT_EQ(patterns.size(), static_cast<std::size_t>(kBubbleCauses));
}

TEST(TimelineFrame, NarrowBubblesAreSeenTogetherAndNoneIsLost) {
  const Scene scene(ThemeName::Dark);
  for (const int width : {20, 300, 30'000}) {
    FrameView view = scene.view;
    view.width = width;
    std::int64_t seen = 0, all = 0;
    for (const Bubble& bubble : seen_pieces(*scene.document, {2}, view)) seen += (bubble.end - bubble.begin).value;
    for (const Bubble& bubble : scene.document->bubbles)
      all += bubble.who == ClassId{2} ? (bubble.end - bubble.begin).value : 0;
    EXPECT_EQ(seen, all) << width;
  }
}

TEST(TimelineLabels, OnlyWordsThatFit) {
  const Scene scene(ThemeName::Dark, 30);
  const TextWidth width_of = [](const QString& text) { return 6.0 * static_cast<double>(text.size()); };
  FrameView view = scene.view;
  view.height = 200;
  view.width = 2000;
  const auto labels = frame_labels(*scene.document, scene.rows, nullptr, view, width_of);
  ASSERT_FALSE(labels.empty());
  bool cell = false, bubble = false;
  for (const FrameLabel& label : labels) {
    EXPECT_LT(width_of(label.text), label.box.width());
    cell = cell || label.text.startsWith("F0");
    bubble = bubble || label.bubble;
  }
  EXPECT_TRUE(cell);
  EXPECT_TRUE(bubble);
  view.width = 20;
  EXPECT_TRUE(frame_labels(*scene.document, scene.rows, nullptr, view, width_of).empty());
}

TEST(TimelineLabels, MarksOfTheRuler) {
  EXPECT_EQ(nice_step(0.3).value, 1);
  EXPECT_EQ(nice_step(3).value, 5);
  EXPECT_EQ(nice_step(20).value, 20);
  EXPECT_EQ(nice_step(5'000'001).value, 10'000'000);
  EXPECT_EQ(tick_text({1'250'000'000}, {50'000'000}), "1.25 s");
  EXPECT_EQ(tick_text({0}, {50'000'000}), "0 ms");
  EXPECT_EQ(tick_text({12'500}, {500}), QString::fromUtf8("12.5 µs"));
}

TEST(BindingArrows, EveryHopIsABindingAndTheChainEndsAtTheStart) {
  const auto document = pipeline_document();
  const Picked last = {PickedKind::Span, document->critical.back().span, {}};
  const std::vector<ChainHop> hops = binding_hops(*document, last, Arrows::Chain);
  ASSERT_GT(hops.size(), 5u);
  for (std::size_t h = 0; h < hops.size(); ++h) {
    EXPECT_EQ(document->bindings[static_cast<std::size_t>(hops[h].to)].before, hops[h].from);
    EXPECT_EQ(h > 0 ? hops[h - 1].from : last.index, hops[h].to);
  }
  EXPECT_EQ(document->bindings[static_cast<std::size_t>(hops.back().from)].before, -1);
  EXPECT_EQ(binding_hops(*document, last, Arrows::Direct).size(), 1u);
  EXPECT_EQ(binding_hops(*document, last, Arrows::Chain, 3).size(), 3u);
  EXPECT_TRUE(binding_hops(*document, {}, Arrows::Critical).empty());  // drawn from critical_stretches
  EXPECT_TRUE(binding_hops(*document, {}, Arrows::Chain).empty());
  EXPECT_EQ(span_of(*document, {PickedKind::Bubble, 0, {}}), document->bubbles[0].before);
  EXPECT_EQ(span_of(*document, {PickedKind::Span, 1'000'000, {}}), -1);
}

}  // namespace
}  // namespace foreshard::timeline_frame_test
