#include "validation/validation_plot.h"

#include <gtest/gtest.h>

#include "validation/validation_text.h"

namespace foreshard::validation_plot_test {

namespace {

ValidatedRow row(const std::string& gpu, double measured, double predicted) {
  return {.row_id = "r", .source = "s <1>", .gpu = gpu, .framework = "f", .measured = measured, .predicted = predicted};
}

bool has(const std::string& svg, const std::string& part) { return svg.find(part) != std::string::npos; }

}  // namespace

// The scale is 380 to 910 wide with 1 at 645; marks are 2.4 wide, strips begin 30 below the heading at 62 and are 30 high.
TEST(ValidationPlot, MarksStandAtPredictedOverMeasured) {
  ValidatedRow rate = row("b", 10, 5);
  rate.larger_is_better = true;  // half the throughput is twice the time
  const std::string svg = validation_svg(validate({row("a", 1, 1), row("b", 2, 1), rate, row("b", 1, 8)}, {}));
  EXPECT_TRUE(has(svg, "M643.8 105.8h2.4v2.4h-2.4z\" fill")) << svg;  // as measured, half way down its strip
  EXPECT_TRUE(has(svg, "M378.8 "));                                   // half the time: at the left edge
  std::size_t right = 0;                                              // twice the time, and what is farther off
  for (std::size_t at = svg.find("M908.8 "); at != std::string::npos; at = svg.find("M908.8 ", at + 1)) ++right;
  EXPECT_EQ(right, 2u) << svg;
  EXPECT_TRUE(has(svg, "x1=\"910\" y1=\"125\" x2=\"910\""));  // the median of the second strip
  EXPECT_TRUE(has(svg, "s &lt;1&gt;, b, f: 3 rows"));
  EXPECT_FALSE(has(svg, ">Memory<"));
}

// One mark each: at 1 in one strip, at the right edge in the other.
TEST(ValidationPlot, AdaptersAndExpertsHaveStripsOfTheirOwn) {
  for (bool ValidatedRow::*kind : {&ValidatedRow::adapters, &ValidatedRow::experts}) {
    ValidatedRow other = row("a", 1, 4);
    other.*kind = true;
    const std::string svg = validation_svg(validate({row("a", 1, 1), other}, {}));
    for (const char* mark : {"M643.8 ", "M908.8 "}) {
      ASSERT_TRUE(has(svg, mark)) << svg;
      EXPECT_EQ(svg.find(mark), svg.rfind(mark)) << svg;
    }
  }
}

TEST(ValidationPlot, RowsWithoutAValueHaveNoMark) {
  ValidatedRow out = row("a", 0, 1);
  out.ran_out = true;
  const std::string svg = validation_svg(validate({out, row("a", 1, 1), row("a", 1, 0)}, {}));
  EXPECT_TRUE(has(svg, "a, f: 2 rows"));
  EXPECT_FALSE(has(svg, "nan") || has(svg, "inf"));
  EXPECT_FALSE(has(validation_svg(validate({}, {})), "NaN"));
}

TEST(ValidationPlot, ThePageHasIt) { EXPECT_TRUE(has(validation_html(validate({row("a", 1, 1)}, {})), "<svg")); }

}  // namespace foreshard::validation_plot_test
