#include "gui/memory/memory_series.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "report/words/span_words.h"

namespace foreshard {

const LiveBytes& MemorySeries::at(Nanoseconds when) const {
  const auto after = std::ranges::upper_bound(steps, when, {}, &MemoryStep::when);
  return after == steps.begin() ? steps.front().live : std::prev(after)->live;
}

LiveBytes MemorySeries::experts_at(Nanoseconds when) const {
  const auto after = std::ranges::upper_bound(steps, when, {}, &MemoryStep::when);
  const std::ptrdiff_t step = after == steps.begin() ? 0 : after - steps.begin() - 1;
  return experts.empty() ? LiveBytes{} : experts[static_cast<std::size_t>(step)];
}

bool holds_experts(const Plan& plan, const Buffer& buffer) {
  return !buffer.holds.empty() && std::ranges::all_of(buffer.holds, [&](const Shard& shard) {
    return plan.tensors[shard.tensor.index()].grid == Grid::Expert;
  });
}

// The plan in which all buffers of the role but those of experts are empty; none if there are no experts.
static std::optional<Plan> plan_of_experts(const Plan& plan, RoleId role) {
  std::vector<Buffer> buffers = plan.roles[role.index()].buffers;
  bool any = false;
  for (Buffer& buffer : buffers) {
    if (holds_experts(plan, buffer))
      any = true;
    else
      buffer.bytes = {};
  }
  if (!any) return {};
  Plan of_experts = plan;
  of_experts.roles[role.index()].buffers = std::move(buffers);
  return of_experts;
}

// [step] the live bytes of the curve from the moments of `steps` on.
static std::vector<LiveBytes> sampled(const MemoryCurve& curve, Nanoseconds makespan, const std::vector<MemoryStep>& steps) {
  const std::vector<MemoryStep> own = memory_steps(curve, makespan, INT_MAX);
  std::vector<LiveBytes> live;
  std::size_t now = 0;
  for (const MemoryStep& step : steps) {
    while (now + 1 < own.size() && own[now + 1].when <= step.when) ++now;
    live.push_back(own.empty() || own[now].when > step.when ? LiveBytes{} : own[now].live);
  }
  return live;
}

std::vector<MemorySeries> make_series(const Document& document, ClassId who) {
  const Trace& trace = document.trace();
  if (!who.valid() || who.index() >= trace.classes.size()) return {};
  Trace own{.origin = trace.origin, .makespan = trace.makespan, .classes = {trace.classes[who.index()]}};
  const auto spans = std::ranges::equal_range(trace.spans, who, {}, &Span::who);
  own.spans.assign(spans.begin(), spans.end());
  for (Span& span : own.spans) span.who = {0};
  std::vector<MemorySeries> all;
  for (const MemoryCurve& curve : memory_timeline(document.plan(), own).curves)
    all.push_back({.who = who,
                   .space = curve.space,
                   .steps = memory_steps(curve, trace.makespan, INT_MAX),
                   .peak = curve.peak,
                   .peak_time = curve.peak_time,
                   .arena = curve.arena,
                   .makespan = trace.makespan});
  if (const auto of_experts = plan_of_experts(document.plan(), trace.classes[who.index()].role))
    for (const MemoryCurve& curve : memory_timeline(*of_experts, own).curves)
      for (MemorySeries& series : all)
        if (series.space == curve.space) series.experts = sampled(curve, trace.makespan, series.steps);
  return all;
}

ClassId tightest_class(const Document& document) {
  ClassId tightest;
  Bytes most = {-1};
  for (const MemoryCurve& curve : document.result.memory.curves) {
    if (curve.space != Space::Device || sum(curve.peak) <= most) continue;
    most = sum(curve.peak);
    tightest = curve.who;
  }
  if (!tightest.valid() && !document.trace().classes.empty()) tightest = {0};
  return tightest;
}

std::vector<std::size_t> highest_steps(const MemorySeries& series, TimeRange visible, int width) {
  std::vector<std::size_t> columns(static_cast<std::size_t>(std::max(width, 0)));
  if (series.steps.empty()) return columns;
  const double per_pixel = static_cast<double>(visible.length().value) / std::max(width, 1);
  const auto begin_of = [&](std::size_t p) {
    return visible.begin.value + static_cast<std::int64_t>(std::floor(static_cast<double>(p) * per_pixel));
  };
  auto step = std::ranges::upper_bound(series.steps, visible.begin, {}, &MemoryStep::when);
  if (step != series.steps.begin()) --step;
  const auto here = [&] { return static_cast<std::size_t>(step - series.steps.begin()); };
  for (std::size_t p = 0; p < columns.size(); ++p) {
    const std::int64_t end = std::max(begin_of(p + 1), begin_of(p) + 1);
    while (std::next(step) != series.steps.end() && std::next(step)->when.value <= begin_of(p)) ++step;
    columns[p] = here();
    Bytes most = sum(step->live);
    while (std::next(step) != series.steps.end() && std::next(step)->when.value < end) {
      ++step;
      if (sum(step->live) <= most) continue;
      most = sum(step->live);
      columns[p] = here();
    }
  }
  return columns;
}

std::vector<LiveBytes> highest_per_pixel(const MemorySeries& series, TimeRange visible, int width) {
  std::vector<LiveBytes> columns(static_cast<std::size_t>(std::max(width, 0)));
  if (series.steps.empty()) return columns;
  const std::vector<std::size_t> steps = highest_steps(series, visible, width);
  std::ranges::transform(steps, columns.begin(), [&](std::size_t step) { return series.steps[step].live; });
  return columns;
}

namespace {

// Counts the blocks of each buffer that are alive at a moment.
class BlockCount {
 public:
  BlockCount(const Document& document, ClassId who, Space space, Nanoseconds when)
      : plan_(document.plan()),
        role_(role_of(document.plan(), document.trace(), who)),
        space_(space),
        when_(when),
        alive_(role_.buffers.size(), 0) {
    for (const CostTable& table : plan_.costs)
      if (table.device_kind == role_.device_kind) costs_ = &table;
    carry_over();
    const auto spans = std::ranges::equal_range(document.trace().spans, who, {}, &Span::who);
    for (const Span& span : spans)
      if (span.begin <= when) play(span);
  }

  std::vector<LiveBlock> blocks() const {
    std::vector<LiveBlock> list;
    for (std::size_t b = 0; b < alive_.size(); ++b) {
      const Buffer& buffer = role_.buffers[b];
      if (alive_[b] <= 0 || buffer.space != space_ || buffer.bytes.value == 0) continue;
      list.push_back({buffer.name, buffer.category, alive_[b], buffer.bytes * std::int64_t{alive_[b]}});
    }
    std::ranges::stable_sort(list, [](const LiveBlock& a, const LiveBlock& b) { return a.bytes > b.bytes; });
    return list;
  }

 private:
  const std::vector<Instruction>& instructions(const Action& action) const {
    return plan_.segments[action.segment.index()].instructions;
  }

  // A block that the program releases before anything else touches it was alive from the beginning.
  void carry_over() {
    for (std::size_t b = 0; b < alive_.size(); ++b)
      if (role_.buffers[b].resident) alive_[b] = static_cast<int>(role_.buffers[b].offsets.size());
    std::map<std::pair<std::int32_t, std::int32_t>, bool> met;
    for (const Action& action : role_.actions)
      for (const Instruction& instruction : instructions(action)) {
        for (const Block& block : instruction.acquires)
          met.emplace(std::pair(block.buffer.value, value_of(block.slot, action)), true);
        for (const Block& block : instruction.releases)
          if (met.emplace(std::pair(block.buffer.value, value_of(block.slot, action)), true).second)
            ++alive_[block.buffer.index()];
      }
  }

  // The times inside a span as memory_timeline has them: isolated times, stretched to the length of the span.
  void play(const Span& span) {
    const Action& action = role_.actions[static_cast<std::size_t>(span.action)];
    const std::vector<Instruction>& all = instructions(action);
    std::vector<std::size_t> members;
    for (auto i = static_cast<std::size_t>(span.instruction);
         i < all.size() && members.size() < static_cast<std::size_t>(span.count); ++i)
      if (all[i].stream == span.stream) members.push_back(i);
    const auto busy = [&](std::size_t i) { return costs_ ? costs_->by_segment[action.segment.index()][i].busy.value : 0; };
    std::int64_t isolated = 0, now = 0;
    for (const std::size_t i : members) isolated += busy(i);
    const std::int64_t total = isolated > 0 ? isolated : static_cast<std::int64_t>(members.size());
    for (const std::size_t i : members) {
      if (time_in(span, now, total) > when_) return;
      for (const Block& block : all[i].acquires) ++alive_[block.buffer.index()];
      now += isolated > 0 ? busy(i) : 1;
      if (time_in(span, now, total) > when_) continue;
      for (const Block& block : all[i].releases) --alive_[block.buffer.index()];
    }
  }

  static Nanoseconds time_in(const Span& span, std::int64_t at, std::int64_t total) {
    const std::int64_t length = (span.end - span.begin).value;
    if (total <= 0 || length == total) return {span.begin.value + at};
    const auto exact = static_cast<long double>(at) * static_cast<long double>(length) / static_cast<long double>(total);
    return {span.begin.value + static_cast<std::int64_t>(std::floor(exact))};
  }

  const Plan& plan_;
  const Role& role_;
  Space space_;
  Nanoseconds when_;
  const CostTable* costs_ = nullptr;
  std::vector<int> alive_;
};

constexpr Category kStack[] = {Category::Parameters,  Category::Gradients, Category::Optimizer,
                               Category::Activations, Category::Transient, Category::Communication};

}  // namespace

std::vector<LiveBlock> live_blocks(const Document& document, ClassId who, Space space, Nanoseconds when) {
  if (!who.valid() || who.index() >= document.trace().classes.size()) return {};
  return BlockCount(document, who, space, when).blocks();
}

QImage draw_memory(const MemorySeries& series, TimeRange visible, QSize size, const MemoryScale& scale, const Theme& theme) {
  if (size.isEmpty()) return {};
  QImage image(size, QImage::Format_RGB32);
  image.fill(theme.background);
  const std::vector<std::size_t> columns = highest_steps(series, visible, size.width());
  const auto y_of = [&](Bytes bytes) {
    const double share = static_cast<double>(bytes.value) / static_cast<double>(std::max<std::int64_t>(scale.top.value, 1));
    return size.height() - static_cast<int>(std::lround(std::min(share, 1.0) * size.height()));
  };
  const auto whole = static_cast<double>(visible.length().value) / size.width();
  for (int x = 0; x < size.width(); ++x) {
    if (static_cast<double>(visible.begin.value) + (x + 0.5) * whole > static_cast<double>(series.makespan.value)) break;
    Bytes level = scale.framework;
    int bottom = size.height();
    const auto fill = [&](int top, QColor colour, bool hatched) {
      for (int y = top; y < bottom; ++y)
        reinterpret_cast<QRgb*>(image.scanLine(y))[x] = hatched && (x + y) % 6 < 2 ? colour.darker(135).rgb() : colour.rgb();
      bottom = std::min(bottom, top);
    };
    fill(y_of(level), theme.of(Category::Framework), true);
    const std::size_t step = columns[static_cast<std::size_t>(x)];
    for (const Category category : kStack) {
      if (series.steps.empty()) break;
      const auto c = static_cast<std::size_t>(category);
      if (!series.experts.empty()) fill(y_of(level + series.experts[step][c]), theme.of(category), true);
      level += series.steps[step].live[c];
      fill(y_of(level), theme.of(category), false);
    }
  }
  return image;
}

}  // namespace foreshard
