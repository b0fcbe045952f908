#include <gtest/gtest.h>

#include <QApplication>
#include <QMouseEvent>
#include <QTest>

#include "gui/memory/memory_series.h"
#include "gui/memory/memory_view.h"
#include "gui/timeline/timeline_view.h"
#include "tests/gui/documents.h"

namespace foreshard::memory_test {
namespace {

Bytes of(const LiveBytes& live, Category category) { return live[static_cast<std::size_t>(category)]; }

// 0: 10; 100: 30; 101: 5; 500: 20; until 1000.
MemorySeries steps() {
  const auto live = [](std::int64_t bytes) {
    LiveBytes all = {};
    all[static_cast<std::size_t>(Category::Activations)] = {bytes};
    return all;
  };
  return {.who = {0},
          .steps = {{{0}, live(10)}, {{100}, live(30)}, {{101}, live(5)}, {{500}, live(20)}},
          .peak = live(30),
          .peak_time = {100},
          .arena = {32},
          .makespan = {1000}};
}

TEST(MemorySeries, TheValueAtAMoment) {
  const MemorySeries series = steps();
  for (const auto& [when, bytes] : {std::pair(0, 10), {99, 10}, {100, 30}, {101, 5}, {499, 5}, {500, 20}, {5000, 20}})
    EXPECT_EQ(of(series.at({when}), Category::Activations).value, bytes) << when;
}

TEST(MemorySeries, NoPeakIsLostInAPixel) {
  // Ten pixels of 100: the one that begins at 100 has the peak of a single nanosecond; the one before it does not.
  const std::vector<LiveBytes> columns = highest_per_pixel(steps(), {{0}, {1000}}, 10);
  const std::vector<std::int64_t> expected = {10, 30, 5, 5, 5, 20, 20, 20, 20, 20};
  for (std::size_t p = 0; p < 10; ++p) EXPECT_EQ(sum(columns[p]).value, expected[p]) << p;
  EXPECT_EQ(sum(highest_per_pixel(steps(), {{0}, {1000}}, 1).front()).value, 30);
  EXPECT_EQ(sum(highest_per_pixel(steps(), {{102}, {112}}, 3).back()).value, 5);
}

TEST(MemorySeries, ThePeakIsThatOfTheResult) {
  const auto document = simulated_document();
  for (const MemoryCurve& curve : document->result.memory.curves)
    for (const MemorySeries& series : make_series(*document, curve.who)) {
      if (series.space != curve.space) continue;
      EXPECT_EQ(series.peak, curve.peak);
      EXPECT_EQ(series.peak_time, curve.peak_time);
      EXPECT_EQ(series.at(curve.peak_time), curve.peak);
    }
}

TEST(MemorySeries, TheBlocksThatAreAliveAddUpToTheCategories) {
  const auto document = simulated_document();
  const MemorySeries series = make_series(*document, {1}).front();
  const std::int64_t end = document->trace().makespan.value;
  for (const std::int64_t when : {std::int64_t{0}, end / 7, end / 3, end / 2, series.peak_time.value, end - 1, end}) {
    LiveBytes sums = {};
    for (const LiveBlock& block : live_blocks(*document, {1}, Space::Device, {when}))
      sums[static_cast<std::size_t>(block.category)] += block.bytes;
    EXPECT_EQ(sums, series.at({when})) << "at " << when;
  }
}

TEST(MemorySeries, ExpertsAreAPartOfTheirCategories) {
  const auto document = mixture_document();
  const MemorySeries series = make_series(*document, {0}).front();
  ASSERT_EQ(series.experts.size(), series.steps.size());
  const Plan& plan = document->plan();
  for (const std::int64_t when :
       {std::int64_t{0}, series.makespan.value / 3, series.makespan.value / 2, series.makespan.value}) {
    LiveBytes sums = {};
    for (const LiveBlock& block : live_blocks(*document, {0}, Space::Device, {when}))
      for (const Buffer& buffer : plan.roles.front().buffers)
        if (buffer.name == block.buffer && holds_experts(plan, buffer))
          sums[static_cast<std::size_t>(block.category)] += block.bytes;
    EXPECT_EQ(series.experts_at({when}), sums) << when;
  }
  // Two matrices up and down, for 2 of 8 experts, in two layers: fp32 master weights and moments, over the two replicas of an expert.
  const Bytes optimizer = of(series.experts.front(), Category::Optimizer);
  EXPECT_EQ(optimizer.value, 2 * 2 * (512 * 1024) * 2 * 3 * 4 / 2);
  const auto dense = simulated_document();
  EXPECT_TRUE(make_series(*dense, {0}).front().experts.empty());
}

TEST(MemorySeries, TheStatesOfExpertsAreHatched) {
  const Theme theme = theme_of(ThemeName::Dark);
  MemorySeries series = steps();
  series.experts.assign(series.steps.size(), {});
  const QImage plain = draw_memory(series, {{0}, {1000}}, {10, 40}, {{40}, {4}}, theme);
  for (LiveBytes& live : series.experts) live[static_cast<std::size_t>(Category::Activations)] = {5};
  const QImage hatched = draw_memory(series, {{0}, {1000}}, {10, 40}, {{40}, {4}}, theme);
  int changed = 0;
  for (int y = 0; y < 40; ++y)
    for (int x = 0; x < 10; ++x) {
      const bool of_experts = 40 - y > 4 && 40 - y <= 9;  // the lowest five bytes
      if (!of_experts) {
        EXPECT_EQ(hatched.pixel(x, y), plain.pixel(x, y)) << x << " " << y;
      }
      changed += hatched.pixel(x, y) != plain.pixel(x, y);
    }
  EXPECT_NEAR(changed, 5 * 10 / 3, 4);
}

TEST(MemorySeries, ThePictureHasTheColoursOfItsCategories) {
  const Theme theme = theme_of(ThemeName::Dark);
  // 40 bytes high, 40 pixels: 4 of framework, then 10 of activations at the start, 30 at the peak.
  const QImage image = draw_memory(steps(), {{0}, {1000}}, {10, 40}, {{40}, {4}}, theme);
  const QRgb activations = theme.of(Category::Activations).rgb();
  for (int y = 0; y < 40; ++y) {
    const int height = 40 - y;  // pixels from the ground to the upper edge of this one
    EXPECT_EQ(image.pixel(0, y) == activations, height > 4 && height <= 14) << y;
    EXPECT_EQ(image.pixel(1, y) == activations, height > 4 && height <= 34) << y;
  }
  EXPECT_EQ(hash_of(image), "e2840a4e82f23d93");
}

TEST(MemoryView, FollowsWhatIsPickedAndSharesTheAxis) {
  TimeAxis axis;
  Selection selection;
  MemoryView view(axis, selection);
  view.resize(kHeaderWidth + 600 + kGutterWidth, 320);
  const auto document = simulated_document();
  axis.set_extent({{0}, document->trace().makespan});
  view.set_document(document);
  view.show();
  ASSERT_TRUE(view.shown_class().valid());
  selection.pick({PickedKind::Class, 1, {}});
  EXPECT_EQ(view.shown_class(), ClassId{1});
  ASSERT_NE(view.series(), nullptr);
  selection.pick({PickedKind::Class, 77, {}});
  EXPECT_EQ(view.shown_class(), ClassId{1});
  const QPointF at(kHeaderWidth + 300, 40);  // sent, not moved: under X the pointer is where it is
  QMouseEvent move(QEvent::MouseMove, at, view.mapToGlobal(at), Qt::NoButton, Qt::NoButton, Qt::NoModifier);
  QApplication::sendEvent(&view, &move);
  ASSERT_TRUE(axis.cursor());
  EXPECT_NEAR(static_cast<double>(axis.cursor()->value), static_cast<double>(document->trace().makespan.value) / 2,
              static_cast<double>(document->trace().makespan.value) / 600);
  QTest::mouseClick(&view, Qt::LeftButton, {}, {kHeaderWidth + 20, 290});  // the bar of stage 0
  EXPECT_EQ(view.shown_class(), ClassId{0});
  EXPECT_EQ(view.grab().toImage(), view.grab().toImage());
}

// An offloading plan by hand: the optimizer's state lies in pinned host memory, the gradients in pageable, activations on NVMe.
std::shared_ptr<const Document> offloaded_document() {
  const auto plain = simulated_document();
  Result result = plain->result;
  for (Role& role : result.plan.roles)
    for (Buffer& buffer : role.buffers) {
      if (buffer.category == Category::Optimizer) buffer.space = Space::PinnedHost;
      if (buffer.category == Category::Gradients) buffer.space = Space::PageableHost;
      if (buffer.category == Category::Activations) buffer.space = Space::Nvme;
    }
  result.trace.plan_hash = program_hash(result.plan);
  result.memory = {};
  return make_document(std::move(result), "offloaded", plain->cluster);
}

TEST(MemoryView, EveryTierHasItsCurveLimitAndColours) {
  const auto plain = simulated_document(), document = offloaded_document();
  TimeAxis axis;
  Selection selection;
  MemoryView view(axis, selection);
  view.resize(kHeaderWidth + 600 + kGutterWidth, 320);
  axis.set_extent({{0}, document->trace().makespan});
  view.set_document(document);
  const Theme theme = theme_of(ThemeName::Dark);
  const ClassId who = view.shown_class();
  const auto shows = [&](Category category) {
    const QImage image = view.grab().toImage();
    for (int y = 0; y < 190; ++y)
      if (image.pixel(kHeaderWidth + 300, y) == theme.of(category).rgb()) return true;
    return false;
  };
  for (const auto& [space, category] : {std::pair(Space::PinnedHost, Category::Optimizer),
                                        {Space::PageableHost, Category::Gradients},
                                        {Space::Nvme, Category::Activations}}) {
    view.set_space(space);
    ASSERT_NE(view.series(), nullptr);
    EXPECT_EQ(view.series()->space, space);
    // What the tier holds at its peak is all of that category, as it was on the device.
    const MemorySeries device = make_series(*plain, who).front();
    Bytes most = {};
    for (const MemoryStep& step : device.steps) most = std::max(most, of(step.live, category));
    EXPECT_EQ(sum(view.series()->peak), most);
    EXPECT_EQ(of(view.series()->peak, category), most);
    EXPECT_TRUE(shows(category)) << static_cast<int>(space);
    EXPECT_FALSE(shows(Category::Parameters)) << static_cast<int>(space);
    EXPECT_EQ(view.capacity(), space == Space::Nvme ? document->cluster->nodes.front().shape.nvme
                                                    : document->cluster->nodes.front().shape.host_memory);
  }
  view.set_space(Space::Device);
  EXPECT_TRUE(shows(Category::Parameters));
  EXPECT_FALSE(shows(Category::Optimizer));
}

// Which of them is larger changes from one strategy to the next.
TEST(MemoryView, LimitsAreNamedInOneOrder) {
  const auto document = std::make_shared<Document>(*simulated_document());
  TimeAxis axis;
  Selection selection;
  const auto names = [&](Bytes capacity, Bytes worst) {
    auto other = std::make_shared<Document>(*document);
    other->summary.fit.capacity = capacity;
    for (StageMemory& stage : other->summary.memory) stage.order_bound = worst;
    MemoryView view(axis, selection);
    view.resize(900, 400);
    view.set_document(other);
    view.wait_for_series();
    QStringList words;
    for (const MemoryLimit& limit : view.limits()) words << limit.words;
    return words;
  };
  const QStringList order = {"capacity", "usable", "reserved", "worst"};
  EXPECT_EQ(names({std::int64_t{80} << 30}, {1}), order);
  EXPECT_EQ(names({1}, {std::int64_t{80} << 30}), order);
}

TEST(MemoryView, WithoutADocumentNothingBreaks) {
  TimeAxis axis;
  Selection selection;
  MemoryView view(axis, selection);
  view.resize(400, 300);
  selection.pick({PickedKind::Span, 3, {}});
  QTest::mouseClick(&view, Qt::LeftButton, {}, {200, 250});
  EXPECT_FALSE(view.grab().isNull());
  view.set_space(Space::Nvme);
  view.set_document(pipeline_document());
  EXPECT_FALSE(view.grab().isNull());
}

}  // namespace
}  // namespace foreshard::memory_test
