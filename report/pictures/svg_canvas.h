// SvgCanvas: collects the SVG elements of a picture. Lengths are in pixels, written with at most two decimals.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/words/palette.h"

namespace foreshard {

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};
enum class Anchor : std::uint8_t { Start, Middle, End };

class SvgCanvas {
 public:
  void rect(Box box, std::string_view fill);  // a colour or "url(#pattern)"
  void rect(Box box, Colour fill) { rect(box, hex(fill)); }
  void rects(const std::vector<Box>& boxes, std::string_view fill);  // all boxes as one SVG element
  void line(double x1, double y1, double x2, double y2, Colour stroke, double width = 1, bool dashed = false);
  void text(double x, double y, std::string_view words, double size, Colour fill, Anchor anchor = Anchor::Start,
            bool bold = false);
  void polygon(const std::vector<std::pair<double, double>>& points, Colour fill);
  void hatch(const std::string& id, BubbleCause cause);  // defines the fill pattern "url(#id)" of the cause
  void begin_group(const std::string& title);            // browsers show the title as a tooltip
  void end_group();
  std::string document(double width, double height, const std::string& title) const;

 private:
  std::string defs_, body_;
};

double text_width(std::string_view words, double size);  // pixels, an estimate for common sans-serif fonts

}  // namespace foreshard
