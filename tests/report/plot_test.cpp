#include "report/plot.h"

#include <gtest/gtest.h>

namespace foreshard {

// Two lines over x = 1 .. 4; the drawing area is 70 to 700 wide and 44 to 368 high.
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
  EXPECT_TRUE(has("x=\"697\" y=\"41\"")) << svg;  // (4, 100)
  EXPECT_TRUE(has("x=\"67\" y=\"203\"")) << svg;  // (1, 50): half way up
}

TEST(Plot, OnePointAndWordsHaveAPicture) {
  const std::string svg = plot_svg({.title = "t", .x_words = {"fast", "slow"}, .series = {{"a", {{0, 1}}}}});
  EXPECT_NE(svg.find("slow"), std::string::npos);
}

}  // namespace foreshard
