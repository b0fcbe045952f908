#include "report/pictures/svg.h"

#include <gtest/gtest.h>

#include <regex>

#include "report/pictures/svg_frame.h"
#include "report/words/palette.h"
#include "tests/report/played.h"
#include "tests/report/summaries.h"

namespace foreshard::svg_test {
namespace {

using namespace played;

Result result_with_memory(const Pipeline& pipeline) {
  Result result = result_of(pipeline);
  MemoryCurve curve{.who = {0}};
  curve.start[0] = {40LL << 30};
  curve.events = {{{1}, Category::Activations, {30LL << 30}}, {{2'000'000}, Category::Activations, {-(30LL << 30)}}};
  curve.peak = curve.start;
  curve.peak[static_cast<std::size_t>(Category::Activations)] = {30LL << 30};
  curve.peak_time = {1};
  result.memory.curves = {curve};
  return result;
}

// Every element is closed in order and every number is a number.
void expect_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-z]+)[^>]*?(/?)>");
  for (std::sregex_iterator at(svg.begin(), svg.end(), tag), end; at != end; ++at) {
    if ((*at)[1].length() > 0) {
      ASSERT_FALSE(open.empty());
      ASSERT_EQ(open.back(), (*at)[2].str());
      open.pop_back();
    } else if ((*at)[3].length() == 0) {
      open.push_back((*at)[2].str());
    }
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_EQ(svg.find("h-0z"), std::string::npos);
}

// Boxes of the path elements, of all or of those with this fill.
int boxes_of(const std::string& svg, const std::string& fill = "") {
  int boxes = 0;
  const std::regex path("<path d=\"([^\"]*)\" fill=\"([^\"]*)\"/>");
  for (std::sregex_iterator at(svg.begin(), svg.end(), path), end; at != end; ++at)
    if (fill.empty() || (*at)[2] == fill) boxes += static_cast<int>(std::count((*at)[1].first, (*at)[1].second, 'M'));
  return boxes;
}

TEST(Svg, DrawsEveryCellAndEveryBubbleOfASmallPipeline) {
  const Result result = result_with_memory({.p = 4, .m = 8});
  const std::string svg = timeline_svg(result, summaries::typical(4), {.title = "a <b> & \"c\""});
  expect_well_formed(svg);
  EXPECT_EQ(boxes_of(svg, hex(colour_of(Cell::Forward))), 4 * 8);
  EXPECT_EQ(boxes_of(svg, hex(colour_of(Cell::Backward))), 4 * 8);
  // Rank r has a gap before its first forward (not rank 0) and one before its first backward (not the last rank); after its
  // last forward one before each of its last p-1-r backwards, and one at the end (not rank 0).
  EXPECT_EQ(boxes_of(svg, "url(#bubble-warm_up)"), 3 + 3);
  EXPECT_EQ(boxes_of(svg, "url(#bubble-drain)"), (3 + 2 + 1) + 3);
  EXPECT_NE(svg.find("a &lt;b&gt; &amp; &quot;c&quot;"), std::string::npos);
  EXPECT_NE(svg.find("peak 71.50 of 80.00"), std::string::npos);  // 40 + 30 + 1.5 of the framework
  EXPECT_NE(svg.find(">capacity<"), std::string::npos);
}

// 1000 micro-batches on 4 stages would be 12000 cells; the picture stays as large as its pixels, and the merged cells still
// cover the lane to its end.
TEST(Svg, SizeIsBoundedByThePixels) {
  const std::string small = timeline_svg(result_with_memory({.p = 4, .m = 60}), summaries::typical(4));
  const std::string large = timeline_svg(result_with_memory({.p = 4, .m = 1500}), summaries::typical(4));
  expect_well_formed(large);
  // 1024 pixels per lane, at most two boxes on each; and no less is drawn than of a pipeline that can be seen cell by cell.
  EXPECT_LT(boxes_of(large), 4 * 2048);
  EXPECT_GT(boxes_of(large), boxes_of(small));
  const std::string lanes = timeline_svg(result_with_memory({.p = 100, .m = 4}), summaries::typical(100));
  expect_well_formed(lanes);
  EXPECT_EQ(lanes.find(">stage 1<"), std::string::npos);  // every second lane
  EXPECT_NE(lanes.find(">stage 2<"), std::string::npos);
  EXPECT_NE(lanes.find(">stage 99<"), std::string::npos);
}

TEST(Svg, AnEmptyResultIsAnEmptyPicture) {
  Result result;
  result.plan = plan_of({.p = 2, .m = 1});
  expect_well_formed(timeline_svg(result, Summary{}));
}

TEST(Svg, TicksAreRound) {
  EXPECT_EQ(ticks(367, 10).step, 20);
  EXPECT_EQ(ticks(367, 10).count, 18);
  EXPECT_EQ(ticks(0.0049, 10).step, 0.0002);
  EXPECT_EQ(ticks(10, 10).step, 1);
  EXPECT_EQ(ticks(10, 10).count, 10);
  EXPECT_EQ(ticks(0, 10).count, 0);
}

// Dark words on light cells, white ones on the dark update.
TEST(Svg, LabelsCanBeRead) {
  EXPECT_EQ(label_on(colour_of(Cell::Forward)), kInk);
  EXPECT_EQ(label_on(colour_of(Cell::Update)), kWhite);
  EXPECT_EQ(hex({0, 114, 178}), "#0072b2");
  EXPECT_EQ(mix({0, 0, 0}, {255, 255, 255}, 0.5), (Colour{128, 128, 128}));
}

}  // namespace
}  // namespace foreshard::svg_test
