#include <fmt/format.h>

#include <algorithm>

#include "report/pictures/svg_frame.h"
#include "report/summary/memory_steps.h"
#include "report/words/span_words.h"
#include "report/words/text_table.h"

namespace foreshard {

namespace {

constexpr Category kStack[] = {Category::Parameters,  Category::Gradients, Category::Optimizer,
                               Category::Activations, Category::Transient, Category::Communication};

const MemoryCurve* tightest(const std::vector<MemoryCurve>& curves) {
  const auto most = std::max_element(curves.begin(), curves.end(),
                                     [](const MemoryCurve& a, const MemoryCurve& b) { return sum(a.peak) < sum(b.peak); });
  return most == curves.end() ? nullptr : &*most;
}

struct Panel {
  SvgCanvas& canvas;
  const TimeScale& scale;
  double top = 0, height = 0;
  double most = 1;  // GiB at the top
  double y(double gib) const { return top + height * (1 - gib / most); }

  void axis() const {
    const Ticks steps = ticks(most, 4);
    for (int i = 0; i <= steps.count; ++i) {
      canvas.line(scale.left, y(i * steps.step), scale.right, y(i * steps.step), kRule);
      canvas.text(scale.left - 6, y(i * steps.step) + 3.5, fmt::format("{:g}", i * steps.step), 10, kFaint, Anchor::End);
    }
  }

  // Draws the band of one category in the stack: between the sum of the categories below it and the sum with it.
  void band(const std::vector<MemoryStep>& steps, Bytes framework, std::size_t upto, Category category) const {
    const auto level = [&](const MemoryStep& step, std::size_t count) {
      Bytes total = framework;
      for (std::size_t c = 0; c < count; ++c) total += step.live[static_cast<std::size_t>(kStack[c])];
      return y(in_gib(total));
    };
    std::vector<std::pair<double, double>> points, below;
    bool empty = true;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const double x = scale.at(steps[s].when), next = s + 1 < steps.size() ? scale.at(steps[s + 1].when) : scale.right;
      empty = empty && steps[s].live[static_cast<std::size_t>(category)] == Bytes{};
      for (const double at : {x, next}) {
        points.emplace_back(at, level(steps[s], upto + 1));
        below.emplace_back(at, level(steps[s], upto));
      }
    }
    if (empty) return;
    points.insert(points.end(), below.rbegin(), below.rend());
    canvas.polygon(points, colour_of(category));
  }

  void limit(Bytes bytes, const std::string& words, Colour colour, bool dashed, double offset) const {
    canvas.line(scale.left, y(in_gib(bytes)), scale.right, y(in_gib(bytes)), colour, 1, dashed);
    canvas.text(scale.right + 6, y(in_gib(bytes)) + offset, words, 10, colour);
  }
};

}  // namespace

ClassId draw_memory(SvgCanvas& canvas, const Result& result, const Summary& summary, const TimeScale& scale, double top,
                    double height) {
  const std::vector<MemoryCurve> curves = device_curves(result);
  const MemoryCurve* curve = tightest(curves);
  if (curve == nullptr) return {};
  const auto most_points = static_cast<int>(scale.right - scale.left);
  const std::vector<MemoryStep> steps = memory_steps(*curve, result.trace.makespan, most_points);
  const Bytes peak = sum(curve->peak) + summary.fit.framework;
  // Where the peak is small beside the capacity, an axis up to the capacity would flatten the curve: the capacity is then only
  // in the title.
  const bool roomy = in_gib(peak) < 0.35 * in_gib(summary.fit.capacity);
  const double most = std::max(roomy ? in_gib(peak) : std::max(in_gib(peak), in_gib(summary.fit.capacity)), 1e-6) * 1.04;
  const Panel panel{canvas, scale, top, height, most};
  canvas.text(scale.left, top - 8,
              fmt::format("Memory of {} in GiB: peak {:.2f} of {:.2f}", class_name(result.plan, result.trace, curve->who),
                          in_gib(peak), in_gib(summary.fit.capacity)),
              11, kInk, Anchor::Start, true);
  panel.axis();
  if (summary.fit.framework > Bytes{})
    canvas.rect({scale.left, panel.y(in_gib(summary.fit.framework)), scale.right - scale.left,
                 panel.y(0) - panel.y(in_gib(summary.fit.framework))},
                colour_of(Category::Framework));
  for (std::size_t c = 0; c < std::size(kStack); ++c) panel.band(steps, summary.fit.framework, c, kStack[c]);
  canvas.line(scale.left, panel.y(0), scale.right, panel.y(0), kFaint);
  if (summary.fit.capacity > Bytes{} && !roomy) {
    panel.limit(summary.fit.capacity, "capacity", kLimit, false, 1);
    if (summary.fit.reserve > Bytes{}) panel.limit(summary.fit.capacity - summary.fit.reserve, "usable", kLimit, true, 9);
  }
  const double x = scale.at(curve->peak_time), y = panel.y(in_gib(peak));
  canvas.polygon({{x, y - 1}, {x - 4, y - 8}, {x + 4, y - 8}}, kInk);
  return curve->who;
}

}  // namespace foreshard
