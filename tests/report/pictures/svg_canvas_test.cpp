// Elements of a picture, as text.
#include "report/pictures/svg_canvas.h"

#include <gtest/gtest.h>

namespace foreshard::svg_canvas_test {
namespace {

// What the elements added to an empty document.
std::string body(const SvgCanvas& canvas) {
  const std::string text = canvas.document(100, 50, "t"), ground = "fill=\"#ffffff\"/>\n";
  const std::size_t from = text.find(ground) + ground.size();
  return text.substr(from, text.size() - from - std::string("</svg>\n").size());
}

}  // namespace

TEST(SvgCanvas, LengthsHaveTwoDecimals) {
  SvgCanvas canvas;
  canvas.rect({1.0, -0.001, 2.345, 10}, "red");
  EXPECT_EQ(body(canvas), "<rect x=\"1\" y=\"0\" width=\"2.35\" height=\"10\" fill=\"red\"/>\n");
}

TEST(SvgCanvas, ManyBoxesAreOnePath) {
  SvgCanvas canvas;
  canvas.rects({{1, 2, 3, 4}, {10, 20, 30, 40}}, "url(#h)");
  EXPECT_EQ(body(canvas), "<path d=\"M1 2h3v4h-3zM10 20h30v40h-30z\" fill=\"url(#h)\"/>\n");
}

// What a reader of SVG would take for markup is escaped, in texts and in titles; control characters are left out.
TEST(SvgCanvas, TextIsEscaped) {
  SvgCanvas canvas;
  canvas.text(1, 2, "a < b & \"c\"\x01", 9, kWhite, Anchor::Middle, true);
  canvas.begin_group("<x>");
  canvas.end_group();
  const std::string all = body(canvas);
  EXPECT_NE(all.find(">a &lt; b &amp; &quot;c&quot;</text>"), std::string::npos) << all;
  EXPECT_NE(all.find("text-anchor=\"middle\" font-weight=\"600\""), std::string::npos) << all;
  EXPECT_NE(all.find("<g><title>&lt;x&gt;</title>\n</g>\n"), std::string::npos) << all;
  EXPECT_NE(canvas.document(1, 1, "a&b").find("<title>a&amp;b</title>"), std::string::npos);
}

TEST(SvgCanvas, LinesAndPolygons) {
  SvgCanvas canvas;
  canvas.line(0, 1, 2, 3, kWhite);
  canvas.line(0, 1, 2, 3, kWhite, 2, true);
  canvas.polygon({{0, 0}, {1, 0.5}}, kWhite);
  EXPECT_EQ(body(canvas),
            "<line x1=\"0\" y1=\"1\" x2=\"2\" y2=\"3\" stroke=\"#ffffff\" stroke-width=\"1\"/>\n"
            "<line x1=\"0\" y1=\"1\" x2=\"2\" y2=\"3\" stroke=\"#ffffff\" stroke-width=\"2\" stroke-dasharray=\"5 3\"/>\n"
            "<polygon points=\"0,0 1,0.5 \" fill=\"#ffffff\"/>\n");
}

// Patterns stand in the definitions, before the elements, and no two causes look alike.
TEST(SvgCanvas, HatchesDiffer) {
  std::vector<std::string> seen;
  for (int cause = 0; cause < kBubbleCauses; ++cause) {
    SvgCanvas canvas;
    canvas.hatch("h", static_cast<BubbleCause>(cause));
    EXPECT_EQ(body(canvas), "");
    const std::string text = canvas.document(1, 1, "");
    EXPECT_LT(text.find("<pattern id=\"h\""), text.find("</defs>"));
    EXPECT_EQ(std::find(seen.begin(), seen.end(), text), seen.end()) << cause;
    seen.push_back(text);
  }
}

TEST(SvgCanvas, TextGrowsWithItsSize) {
  EXPECT_EQ(text_width("", 10), 0);
  EXPECT_DOUBLE_EQ(text_width("abcd", 10), 2 * text_width("ab", 10));
  EXPECT_DOUBLE_EQ(text_width("ab", 20), 2 * text_width("ab", 10));
}

}  // namespace foreshard::svg_canvas_test
