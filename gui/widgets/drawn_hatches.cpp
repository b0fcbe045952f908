#include "gui/widgets/drawn_hatches.h"

#include <QRegularExpression>
#include <QString>
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <vector>

namespace foreshard {

namespace {

struct Hatch {  // lines every `gap` pixels, upright ones turned by `angle` degrees; crossed: and at right angles to them
  double gap = 6, angle = 0;
  bool crossed = false;
  QString fill = {}, stroke = {};
};

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

std::map<QString, Hatch> hatches_of(const QString& svg) {
  static const QRegularExpression pattern(
      QStringLiteral("<pattern id=\"([^\"]+)\" width=\"([0-9.]+)\"[^>]*rotate\\(([-0-9.]+)\\)\">(.*?)</pattern>"),
      QRegularExpression::DotMatchesEverythingOption);
  static const QRegularExpression fill(QStringLiteral("fill=\"([^\"]+)\"")), stroke(QStringLiteral("stroke=\"([^\"]+)\""));
  std::map<QString, Hatch> hatches;
  for (auto found = pattern.globalMatch(svg); found.hasNext();) {
    const auto match = found.next();
    const QString inside = match.captured(4);
    hatches[match.captured(1)] = {.gap = std::max(match.captured(2).toDouble(), 1.0),
                                  .angle = match.captured(3).toDouble(),
                                  .crossed = inside.count("<line") > 1,
                                  .fill = fill.match(inside).captured(1),
                                  .stroke = stroke.match(inside).captured(1)};
  }
  return hatches;
}

// The lines n . p = k gap inside the box, n at `degrees`: they go on from one box to the next like those of a pattern.
QString lines_in(const Box& box, double gap, double degrees) {
  const double turn = degrees * std::numbers::pi / 180, nx = std::cos(turn), ny = std::sin(turn);
  const double corners[] = {nx * box.x + ny * box.y, nx * (box.x + box.width) + ny * box.y,
                            nx * box.x + ny * (box.y + box.height), nx * (box.x + box.width) + ny * (box.y + box.height)};
  const auto [least, most] = std::minmax_element(std::begin(corners), std::end(corners));
  QString path;
  for (double c = std::ceil(*least / gap) * gap; c <= *most; c += gap) {
    // p = c n + t d with d = (-ny, nx), t cut to the box.
    double from = -1e9, to = 1e9;
    const auto cut = [&](double start, double direction, double low, double high) {
      if (std::abs(direction) < 1e-9) {
        if (start < low || start > high) from = 1, to = 0;
        return;
      }
      const double a = (low - start) / direction, b = (high - start) / direction;
      from = std::max(from, std::min(a, b)), to = std::min(to, std::max(a, b));
    };
    cut(c * nx, -ny, box.x, box.x + box.width);
    cut(c * ny, nx, box.y, box.y + box.height);
    if (to - from < 0.3) continue;
    path += QString("M%1 %2L%3 %4")
                .arg(c * nx - from * ny, 0, 'f', 2)
                .arg(c * ny + from * nx, 0, 'f', 2)
                .arg(c * nx - to * ny, 0, 'f', 2)
                .arg(c * ny + to * nx, 0, 'f', 2);
  }
  return path;
}

// The rectangles of `<rect .../>`, or of a path "Mx yhWvHh-Wz..." of several.
std::vector<Box> boxes_of(const QRegularExpressionMatch& match) {
  if (!match.captured(1).isEmpty())
    return {{match.captured(1).toDouble(), match.captured(2).toDouble(), match.captured(3).toDouble(),
             match.captured(4).toDouble()}};
  static const QRegularExpression one(QStringLiteral("M([-0-9.]+) ([-0-9.]+)h([0-9.]+)v([0-9.]+)"));
  std::vector<Box> boxes;
  for (auto found = one.globalMatch(match.captured(5)); found.hasNext();) {
    const auto box = found.next();
    boxes.push_back(
        {box.captured(1).toDouble(), box.captured(2).toDouble(), box.captured(3).toDouble(), box.captured(4).toDouble()});
  }
  return boxes;
}

}  // namespace

std::string with_drawn_hatches(const std::string& text) {
  const QString svg = QString::fromStdString(text);
  const std::map<QString, Hatch> hatches = hatches_of(svg);
  static const QRegularExpression filled(
      QStringLiteral("<(?:rect x=\"([-0-9.]+)\" y=\"([-0-9.]+)\" width=\"([0-9.]+)\" height=\"([0-9.]+)\"|path "
                     "d=\"([^\"]+)\") fill=\"url\\(#([^)]+)\\)\"/>"));
  QString out;
  qsizetype done = 0;
  for (auto found = filled.globalMatch(svg); found.hasNext();) {
    const auto match = found.next();
    const auto hatch = hatches.find(match.captured(6));
    if (hatch == hatches.end()) continue;
    const Hatch& of = hatch->second;
    out += svg.mid(done, match.capturedStart() - done);
    out += match.captured().replace("url(#" + match.captured(6) + ")", of.fill);
    QString lines;
    for (const Box& box : boxes_of(match))
      lines += lines_in(box, of.gap, of.angle) + (of.crossed ? lines_in(box, of.gap, of.angle + 90) : QString());
    if (!lines.isEmpty()) out += "<path d=\"" + lines + "\" fill=\"none\" stroke=\"" + of.stroke + "\" stroke-width=\"0.7\"/>";
    done = match.capturedEnd();
  }
  return (out + svg.mid(done)).toStdString();
}

}  // namespace foreshard
