#include "report/pictures/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/pictures/svg_frame.h"
#include "report/tables/stage_tables.h"
#include "report/words/span_words.h"
#include "report/words/text_table.h"

namespace foreshard {

Ticks ticks(double most, int wanted) {
  if (!(most > 0)) return {};
  const double rough = most / std::max(wanted, 1), power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0})
    if (factor * power <= rough * 1.0001) step = factor * power;
  return {step, static_cast<int>(most / step + 1e-9)};
}

double draw_legend(SvgCanvas& canvas, double x, double y, const std::vector<Swatch>& swatches) {
  for (const Swatch& swatch : swatches) {
    canvas.rect({x, y - 8, 14, 10}, swatch.fill);
    canvas.text(x + 18, y, swatch.name, 10, kInk);
    x += 18 + text_width(swatch.name, 10) + 14;
  }
  return x;
}

namespace {

constexpr double kGutter = 92, kMostGutter = 220, kMargin = 84, kMemory = 150;

// The name, cut at its end where there is no room for all of it.
std::string fitted(std::string name, double room, double size) {
  if (text_width(name, size) <= room) return name;
  while (!name.empty() && text_width(name + "…", size) > room) name.pop_back();
  return name + "…";
}

class Picture {
 public:
  Picture(const Result& result, const Summary& summary, const SvgOptions& options)
      : result_(result),
        summary_(summary),
        options_(options),
        scale_{kGutter, options.width - kMargin, result.trace.makespan} {}

  std::string draw() {
    for (int c = 0; c < kBubbleCauses; ++c) canvas_.hatch(hatch_id(static_cast<BubbleCause>(c)), static_cast<BubbleCause>(c));
    choose_lanes();
    heading();
    const double lanes_end = y_ + shape_.pitch * static_cast<double>(lanes_.size());
    time_grid(lanes_end);
    bubbles_ = find_bubbles(result_.plan, result_.trace, bind_spans(result_.plan, result_.trace));
    for (const ClassId who : lanes_) lane(who);
    y_ = lanes_end + 22;
    time_labels(lanes_end);
    legends();
    memory();
    return canvas_.document(options_.width, y_, options_.title.empty() ? "foreshard timeline" : options_.title);
  }

 private:
  // Takes the first class of each role. If there are more than most_lanes, it keeps every k-th and the last.
  void choose_lanes() {
    std::vector<bool> seen(result_.plan.roles.size(), false);
    std::vector<ClassId> all;
    for (std::size_t c = 0; c < result_.trace.classes.size(); ++c) {
      const std::size_t role = result_.trace.classes[c].role.index();
      if (seen[role]) continue;
      seen[role] = true;
      all.push_back({static_cast<std::int32_t>(c)});
    }
    const auto most = static_cast<std::size_t>(std::max(options_.most_lanes, 2));
    const std::size_t every = (all.size() + most - 1) / most;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (i % every == 0 || i + 1 == all.size()) lanes_.push_back(all[i]);
    const auto lanes = static_cast<double>(lanes_.size());
    shape_.pitch = std::clamp(480 / std::max(lanes, 1.0), 9.0, 38.0);
    shape_.strip = shape_.pitch >= 18 ? std::min(5.0, shape_.pitch * 0.14) : 0;
    shape_.height = shape_.pitch - shape_.strip - (shape_.pitch >= 18 ? 6 : 2);
    shape_.merged = std::max(1.0, lanes / 16);
    shape_.least = 0.5 * shape_.merged;
    double room = kGutter;  // left of the lanes, for their names
    for (const ClassId who : lanes_)
      room = std::max(room, text_width(role_of(result_.plan, result_.trace, who).name, std::min(11.0, shape_.height)) + 14);
    scale_.left = std::min(room, kMostGutter);
  }

  void heading() {
    y_ = 26;
    if (!options_.title.empty()) {
      canvas_.text(14, y_, options_.title, 16, kInk, Anchor::Start, true);
      y_ += 18;
    }
    if (!options_.subtitle.empty()) {
      canvas_.text(14, y_, options_.subtitle, 11, kFaint);
      y_ += 16;
    }
    canvas_.text(14, y_,
                 fmt::format("iteration {} · bubble {} · exposed communication {} · MFU {}", in_time(summary_.iteration_time),
                             in_percent(summary_.bubble.fraction), in_percent(summary_.communication.exposed),
                             in_percent(summary_.flops.model_utilization)),
                 11, kInk);
    y_ += 12;
    canvas_.text(options_.width - 14, y_ + 2, "bubble", 10, kFaint, Anchor::End);
    y_ += 10;
  }

  void time_grid(double lanes_end) {
    const Ticks steps = ticks(to_seconds(result_.trace.makespan).value, 10);
    for (int i = 0; i <= steps.count; ++i) {
      const double x = scale_.at(to_nanoseconds({i * steps.step}));
      canvas_.line(x, y_ - 4, x, lanes_end + 4, kRule);
    }
  }

  void time_labels(double lanes_end) {
    const double seconds = to_seconds(result_.trace.makespan).value;
    const Ticks steps = ticks(seconds, 10);
    double factor = 1;
    const char* unit = "s";
    if (seconds < 1e-3)
      factor = 1e6, unit = "µs";
    else if (seconds < 2)
      factor = 1e3, unit = "ms";
    for (int i = 0; i <= steps.count; ++i)
      canvas_.text(scale_.at(to_nanoseconds({i * steps.step})), lanes_end + 16,
                   fmt::format("{:g}{}", i * steps.step * factor, i == 0 ? std::string(" ") + unit : ""), 10, kFaint,
                   Anchor::Middle);
  }

  void lane(ClassId who) {
    const auto of = [&](const Bubble& bubble, ClassId c) { return bubble.who < c; };
    const auto first = std::lower_bound(bubbles_.begin(), bubbles_.end(), who, of);
    const auto last = std::find_if(first, bubbles_.end(), [&](const Bubble& bubble) { return bubble.who != who; });
    const std::vector<Bubble> own(first, last);
    Nanoseconds idle = {};
    for (const Bubble& bubble : own) idle += bubble.end - bubble.begin;
    note(draw_lane(canvas_, result_, who, own, scale_, y_, shape_));
    const double size = std::min(11.0, shape_.height), base = y_ + shape_.height / 2 + size * 0.36;
    const std::string& name = role_of(result_.plan, result_.trace, who).name;
    canvas_.text(scale_.left - 8, base, fitted(name, scale_.left - 14, size), size, kInk, Anchor::End);
    const double makespan = std::max<double>(static_cast<double>(result_.trace.makespan.value), 1);
    canvas_.text(options_.width - 14, base, in_percent(static_cast<double>(idle.value) / makespan), size, kInk, Anchor::End);
    y_ += shape_.pitch;
  }

  void note(const std::vector<Colour>& drawn) {
    for (const Colour colour : drawn) {
      const char* name = colour == kTransfer ? "transfer"
                         : colour == kCopy   ? "copy"
                         : colour == kInLine ? "blocking collective"
                                             : "collective";
      const Swatch swatch = {name, hex(colour)};
      if (std::none_of(talk_.begin(), talk_.end(), [&](const Swatch& known) { return known.name == swatch.name; }))
        talk_.push_back(swatch);
    }
  }

  void legends() {
    y_ += 14;
    std::vector<Swatch> work, causes;
    std::vector<bool> used(kCells, false);
    for (const Role& role : result_.plan.roles)
      for (const Action& action : role.actions) used[static_cast<std::size_t>(cell_of(action))] = true;
    for (int c = 0; c < kCells; ++c)
      if (used[static_cast<std::size_t>(c)] && static_cast<Cell>(c) != Cell::Other)
        work.push_back({name_of(static_cast<Cell>(c)), hex(colour_of(static_cast<Cell>(c)))});
    const double x = draw_legend(canvas_, scale_.left, y_, work);
    draw_legend(canvas_, x + 10, y_, talk_);
    y_ += 18;
    for (int c = 0; c < kBubbleCauses; ++c) {
      const auto cause = static_cast<BubbleCause>(c);
      const bool there =
          std::any_of(bubbles_.begin(), bubbles_.end(), [&](const Bubble& bubble) { return bubble.cause == cause; });
      if (there) causes.push_back({words_of(cause), "url(#" + hatch_id(cause) + ")"});
    }
    if (causes.empty()) return;
    canvas_.text(scale_.left - 8, y_, "bubbles", 10, kFaint, Anchor::End);
    draw_legend(canvas_, scale_.left, y_, causes);
    y_ += 8;
  }

  void memory() {
    y_ += 34;
    const ClassId shown = draw_memory(canvas_, result_, summary_, scale_, y_, kMemory);
    if (!shown.valid()) return;
    y_ += kMemory + 22;
    std::vector<Swatch> categories;
    for (const Category category : {Category::Framework, Category::Parameters, Category::Gradients, Category::Optimizer,
                                    Category::Activations, Category::Transient, Category::Communication})
      categories.push_back({words_of(category), hex(colour_of(category))});
    draw_legend(canvas_, scale_.left, y_, categories);
    y_ += 16;
  }

  const Result& result_;
  const Summary& summary_;
  const SvgOptions& options_;
  TimeScale scale_;
  LaneShape shape_ = {};
  SvgCanvas canvas_ = {};
  std::vector<ClassId> lanes_ = {};
  std::vector<Bubble> bubbles_ = {};
  std::vector<Swatch> talk_ = {};  // kinds of communication that were drawn
  double y_ = 0;
};

}  // namespace

std::string timeline_svg(const Result& result, const Summary& summary, const SvgOptions& options) {
  return Picture(result, summary, options).draw();
}

}  // namespace foreshard
