#include "report/pictures/svg_canvas.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "report/words/text_table.h"

namespace foreshard {

static std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20) out += c;
    }
  }
  return out;
}

// At most two decimals, no trailing zeros: pictures have thousands of coordinates.
static std::string number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

double text_width(std::string_view words, double size) { return width_of(words) * size * 0.58; }

void SvgCanvas::rect(Box box, std::string_view fill) {
  fmt::format_to(std::back_inserter(body_), "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", number(box.x),
                 number(box.y), number(box.width), number(box.height), fill);
}

void SvgCanvas::rects(const std::vector<Box>& boxes, std::string_view fill) {
  body_ += "<path d=\"";
  for (const Box& box : boxes)
    fmt::format_to(std::back_inserter(body_), "M{} {}h{}v{}h-{}z", number(box.x), number(box.y), number(box.width),
                   number(box.height), number(box.width));
  fmt::format_to(std::back_inserter(body_), "\" fill=\"{}\"/>\n", fill);
}

void SvgCanvas::line(double x1, double y1, double x2, double y2, Colour stroke, double width, bool dashed) {
  fmt::format_to(std::back_inserter(body_),
                 "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n", number(x1),
                 number(y1), number(x2), number(y2), hex(stroke), number(width), dashed ? " stroke-dasharray=\"5 3\"" : "");
}

void SvgCanvas::text(double x, double y, std::string_view words, double size, Colour fill, Anchor anchor, bool bold) {
  constexpr const char* anchors[] = {"start", "middle", "end"};
  fmt::format_to(std::back_inserter(body_),
                 "<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\" text-anchor=\"{}\"{}>{}</text>\n", number(x), number(y),
                 number(size), hex(fill), anchors[static_cast<int>(anchor)], bold ? " font-weight=\"600\"" : "",
                 escaped(words));
}

void SvgCanvas::polygon(const std::vector<std::pair<double, double>>& points, Colour fill) {
  body_ += "<polygon points=\"";
  for (const auto& [x, y] : points) fmt::format_to(std::back_inserter(body_), "{},{} ", number(x), number(y));
  fmt::format_to(std::back_inserter(body_), "\" fill=\"{}\"/>\n", hex(fill));
}

void SvgCanvas::hatch(const std::string& id, BubbleCause cause) {
  const Colour ink = colour_of(cause);
  double angle = 45, gap = 6;
  bool crossed = false;
  switch (cause) {
    case BubbleCause::WarmUp: break;
    case BubbleCause::Drain: angle = -45; break;
    case BubbleCause::Dependency: angle = 0; break;
    case BubbleCause::ExposedCommunication: gap = 4; break;
    case BubbleCause::Straggler: crossed = true; break;
    case BubbleCause::Barrier: angle = 90; break;
    case BubbleCause::Imbalance: crossed = true, angle = 0, gap = 5; break;
  }
  fmt::format_to(
      std::back_inserter(defs_),
      "<pattern id=\"{}\" width=\"{}\" height=\"{}\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate({})\">"
      "<rect width=\"{}\" height=\"{}\" fill=\"{}\"/><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"{}\" stroke=\"{}\"/>",
      id, gap, gap, angle, gap, gap, hex(mix(kWhite, ink, 0.1)), gap, hex(mix(kWhite, ink, 0.6)));
  if (crossed)
    fmt::format_to(std::back_inserter(defs_), "<line x1=\"0\" y1=\"0\" x2=\"{}\" y2=\"0\" stroke=\"{}\"/>", gap,
                   hex(mix(kWhite, ink, 0.6)));
  defs_ += "</pattern>\n";
}

void SvgCanvas::begin_group(const std::string& title) { body_ += "<g><title>" + escaped(title) + "</title>\n"; }
void SvgCanvas::end_group() { body_ += "</g>\n"; }

std::string SvgCanvas::document(double width, double height, const std::string& title) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"Inter, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif\">\n<title>{2}</title>\n<defs>\n{3}</defs>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n{4}</svg>\n",
      number(width), number(height), escaped(title), defs_, body_);
}

}  // namespace foreshard
