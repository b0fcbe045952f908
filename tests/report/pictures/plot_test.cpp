#include "report/pictures/plot.h"

#include <gtest/gtest.h>

namespace foreshard {

// Two lines over x = 1 .. 4; the drawing area is 70 to 700 wide and, below the title and the legend, 64 to 368 high.
TEST(Plot, PointsLieWhereTheAxesSay) {
  const Plot plot{.title = "sweep",
                  .x_name = "nodes",
                  .y_name = "tokens per second",
                  .series = {{"a", {{1, 0}, {4, 100}}}, {"b", {{1, 50}}}, {"empty", {}}}};
  const std::string svg = plot_svg(plot, 720, 420);
  EXPECT_NE(svg.find("<svg"), std::string::npos);
  EXPECT_NE(svg.find("tokens per second"), std::string::npos);
  EXPECT_EQ(svg.find("empty"), std::string::npos);
  const auto has = [&](const std::string& part) { return svg.find(part) != std::string::npos; };
  EXPECT_TRUE(has("x=\"67\" y=\"365\"")) << svg;  // (1, 0): a square of 6 around (70, 368)
  EXPECT_TRUE(has("x=\"697\" y=\"61\"")) << svg;  // (4, 100)
  EXPECT_TRUE(has("x=\"67\" y=\"213\"")) << svg;  // (1, 50): half way up
}

// 55,200 tokens per second need lines up to 60,000, in words that fit left of the axis; the interval goes to 64,000, so 70,000.
TEST(Plot, TheTopmostLineIsAboveAllAndNothingIsClipped) {
  Plot plot{.title = "sweep", .x_name = "seq", .series = {{"a", {{4096, 41'000}, {131'072, 55'200}}}}};
  const auto has = [&](const std::string& part) { return plot_svg(plot, 720, 420).find(part) != std::string::npos; };
  EXPECT_TRUE(has(">60,000<"));
  EXPECT_FALSE(has("e+04"));
  plot.series[0].points[1].low = 46'000, plot.series[0].points[1].high = 64'000, plot.interval_name = "bars";
  EXPECT_TRUE(has(">70,000<"));
  EXPECT_TRUE(has(">bars<"));
  // "131,072" is 7 * 12 * 0.58 = 49 wide and centred at the right end, 30 from the edge of 720.
  EXPECT_TRUE(has("x=\"689.64\" y=\"386\"")) << plot_svg(plot, 720, 420);
}

TEST(Plot, OnePointAndWordsHaveAPicture) {
  const std::string svg = plot_svg({.title = "t", .x_words = {"fast", "slow"}, .series = {{"a", {{0, 1}}}}});
  EXPECT_NE(svg.find("slow"), std::string::npos);
}

}  // namespace foreshard
