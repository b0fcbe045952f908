#include "gui/document/timeline_frame.h"

#include <QThread>
#include <QtConcurrent>
#include <algorithm>
#include <array>
#include <cmath>

#include "gui/document/background.h"

namespace foreshard {

std::vector<LaneBox> lane_boxes(const Row& row, bool twin) {
  std::vector<LaneBox> boxes;
  int left = row.height - (row.height >= 10 ? 2 : row.height >= 6 ? 1 : 0);
  int measured = 0;
  if (twin && left >= 12) {
    measured = left / 3;
    left -= measured + 3;
  }
  const int communication = left >= 13 ? std::clamp(left / 4, 4, 8) : 0;
  int compute = left - (communication > 0 ? communication + 1 : 0);
  const bool split = row.worst.valid() && !row.open && compute >= 9;
  const int worst = split ? compute * 3 / 5 : 0;
  compute -= split ? worst + 1 : 0;
  int top = 0;
  boxes.push_back({BoxKind::Compute, top, compute});
  top += compute;
  if (split) boxes.push_back({BoxKind::Worst, top + 1, worst}), top += worst + 1;
  if (communication > 0) {
    const int copies = communication / 3;
    boxes.push_back({BoxKind::Communication, top + 1, communication - copies});
    boxes.push_back({BoxKind::Copy, top + 1 + communication - copies, copies});
    top += communication + 1;
  }
  if (measured > 0) {
    boxes.push_back({BoxKind::Error, top, 3});
    boxes.push_back({BoxKind::Measured, top + 3, measured});
  }
  return boxes;
}

bool on_hatch(BubbleCause cause, int x, int y, double scale) {
  const int period = std::max(4, static_cast<int>(std::lround(7 * scale)));
  const int stroke = std::max(1, static_cast<int>(std::lround(1.3 * scale)));
  const auto on = [&](int at, int every) { return ((at % every) + every) % every < stroke; };
  switch (cause) {
    case BubbleCause::WarmUp: return on(x + y, period);
    case BubbleCause::Drain: return on(x - y, period);
    case BubbleCause::Dependency: return on(x + y, 2 * period) || on(x - y, 2 * period);
    case BubbleCause::ExposedCommunication: return on(y, std::max(3, period * 4 / 7));
    case BubbleCause::Straggler: return on(x, std::max(3, period * 5 / 7));
    case BubbleCause::Barrier: return on(x, std::max(3, period * 4 / 7)) && on(y, std::max(3, period * 4 / 7));
    case BubbleCause::Imbalance: return on(x, period) || on(y, period);
  }
  return false;
}

static QRgb mixed(QColor a, QColor b, double share_of_b) {
  const auto part = [&](int x, int y) { return static_cast<int>(std::lround(x * (1 - share_of_b) + y * share_of_b)); };
  return qRgb(part(a.red(), b.red()), part(a.green(), b.green()), part(a.blue(), b.blue()));
}

QColor error_colour(const Theme& theme, double error) {
  const double strength = std::min(std::abs(error) / 0.25, 1.0);
  return QColor::fromRgb(mixed(theme.raised, error > 0 ? theme.limit : theme.transfer(), 0.15 + 0.85 * strength));
}

std::vector<Bubble> seen_pieces(const Document& document, ClassId who, const FrameView& view) {
  const std::span<const Bubble> pieces = document.pieces_of(who);
  const auto first = pieces.begin(), last = pieces.end();
  const auto narrow = static_cast<std::int64_t>(3.0 * static_cast<double>(view.visible.length().value) / view.width);
  std::vector<Bubble> seen;
  std::array<std::int64_t, kBubbleCauses> shares = {};
  bool open = false;  // the last one seen is made of narrow ones
  auto bubble = std::upper_bound(first, last, view.visible.begin, [](Nanoseconds t, const Bubble& b) { return t < b.end; });
  for (; bubble != last && bubble->begin < view.visible.end; ++bubble) {
    const bool joins = (bubble->end - bubble->begin).value < narrow;
    if (!joins || !open || seen.back().end != bubble->begin) {
      seen.push_back(*bubble);
      shares = {};
    }
    open = joins;
    shares[static_cast<std::size_t>(bubble->cause)] += (bubble->end - bubble->begin).value;
    seen.back().end = bubble->end;
    seen.back().cause = static_cast<BubbleCause>(std::max_element(shares.begin(), shares.end()) - shares.begin());
  }
  return seen;
}

namespace {

constexpr std::ptrdiff_t kRowsPerThread = 128;  // fewer are painted at once, in the caller's thread

class FramePainter {
 public:
  // Paints into `pixels`, `stride` of them per line. Painters of different rows may work at the same time.
  FramePainter(const FrameSources& sources, const FrameView& view, QRgb* pixels, std::ptrdiff_t stride)
      : sources_(sources),
        view_(view),
        width_(device(view.width)),
        height_(device(view.height)),
        pixels_(pixels),
        stride_(stride),
        sums_(static_cast<std::size_t>(width_)),
        line_(static_cast<std::size_t>(width_)) {
    const TimeRange whole = {{0}, std::max(sources.document->trace().makespan, Nanoseconds{1})};
    if (sources.levels != nullptr) bins_ = LaneLevels::bins_for(whole, view.visible, width_);
  }

  void paint(std::span<const Row> rows) {
    for (const Row& row : rows) {
      const int top = row.top - view_.scroll;
      if (top + row.height <= 0) continue;
      if (top >= view_.height) break;
      for (const LaneBox& box : lane_boxes(row, sources_.twin != nullptr)) draw(row, box, top + box.top);
    }
  }

 private:
  QRgb* pixels_of(int y) const { return pixels_ + y * stride_; }
  int device(int logical) const { return static_cast<int>(std::lround(logical * view_.scale)); }
  double x_of(std::int64_t when) const {
    return static_cast<double>(when - view_.visible.begin.value) * width_ / static_cast<double>(view_.visible.length().value);
  }

  void draw(const Row& row, const LaneBox& box, int logical_top) {
    top_ = device(logical_top);
    bottom_ = std::max(device(logical_top + box.height), top_);
    if (bottom_ <= 0 || top_ >= height_ || top_ == bottom_) return;
    switch (box.kind) {
      case BoxKind::Compute: return compute(row.members);
      case BoxKind::Worst: return compute({{row.worst, 1}});
      case BoxKind::Communication: return plain(row.members, LaneKind::Communication);
      case BoxKind::Copy: return plain(row.members, LaneKind::Copy);
      case BoxKind::Error: return error_strip(row);
      case BoxKind::Measured: return measured(row);
    }
  }

  void add(const Lane& lane, const std::vector<LaneLevels>* levels, const Lanes& of, float weight) {
    const LaneLevels* level = levels == nullptr ? nullptr : &(*levels)[static_cast<std::size_t>(&lane - of.all.data())];
    if (level != nullptr && level->fine_enough(view_.visible, width_))
      level->add(view_.visible, weight, sums_);
    else
      add_slices(lane, view_.visible, sources_.paints, weight, sums_);
  }

  // The mean of the members' lanes; false when none of them has such a lane.
  bool sum_up(const std::vector<RowMember>& members, LaneKind kind) {
    std::fill(sums_.begin(), sums_.end(), Sums{});
    int ranks = 0;
    for (const RowMember& member : members) ranks += member.ranks;
    bool any = false;
    for (const RowMember& member : members) {
      const Lane* lane = sources_.document->lanes.find(member.who, kind);
      if (lane == nullptr) continue;
      any = true;
      add(*lane, sources_.levels, sources_.document->lanes, static_cast<float>(member.ranks) / static_cast<float>(ranks));
    }
    return any;
  }

  // A single lane with levels of detail needs no sums.
  bool quick_line(const std::vector<RowMember>& members) {
    const Lane* lane = members.size() == 1 ? sources_.document->lanes.find(members.front().who, LaneKind::Compute) : nullptr;
    if (lane == nullptr || sources_.levels == nullptr) return false;
    const LaneLevels& level = (*sources_.levels)[static_cast<std::size_t>(lane - sources_.document->lanes.all.data())];
    if (!level.fine_enough(view_.visible, width_)) return false;
    level.draw(bins_, sources_.paints.idle, line_);
    return true;
  }

  // Time after the end of the run is not idle: if the axis is longer, because of another run, the rows are empty there.
  void end_at(Nanoseconds makespan) {
    const double end = std::ceil(x_of(makespan.value));
    if (end < width_) std::fill(line_.begin() + static_cast<int>(std::max(end, 0.0)), line_.end(), sources_.paints.empty);
  }

  void put_line(int from, int to) {
    for (int y = std::max(from, 0); y < std::min(to, height_); ++y) std::copy(line_.begin(), line_.end(), pixels_of(y));
  }

  void plain(const std::vector<RowMember>& members, LaneKind kind) {
    if (!sum_up(members, kind)) return;
    resolve(sums_, sources_.paints.under(kind), line_);
    put_line(top_, bottom_);
  }

  void compute(const std::vector<RowMember>& members) {
    if (!quick_line(members)) {
      sum_up(members, LaneKind::Compute);
      resolve(sums_, sources_.paints.idle, line_);
    }
    end_at(sources_.document->trace().makespan);
    put_line(top_, bottom_);
    const int height = bottom_ - top_;
    if (height >= device(8) && sum_up(members, LaneKind::InLine)) {
      for (std::size_t p = 0; p < line_.size(); ++p) {
        const std::span<Sums> pixel(&sums_[p], 1);
        resolve(pixel, line_[p], {&line_[p], 1});
      }
      put_line(bottom_ - std::max(height / 5, 2), bottom_);
    }
    if (members.size() != 1 || height < device(5)) return;
    if (const Lane* lane = sources_.document->lanes.find(members.front().who, LaneKind::Compute)) seams(*lane);
    hatch(members.front().who);
  }

  // A thin line where a cell that is wide enough ends, so that neighbours of one kind can be told apart.
  void seams(const Lane& lane) {
    const QRgb colour = mixed(sources_.theme.background, sources_.theme.faint, 0.12);
    const double least = 5 * view_.scale;
    if (static_cast<double>(lane.longest) * width_ / static_cast<double>(view_.visible.length().value) * 40 < least) return;
    double cell = -1;
    for (std::size_t i = lane.first_after(view_.visible.begin.value); i < lane.size(); ++i) {
      if (lane.begin[i] >= view_.visible.end.value) break;
      if (lane.look_of(i).first) cell = x_of(lane.begin[i]);
      if (i + 1 < lane.size() && !lane.look_of(i + 1).first) continue;
      const double end = x_of(lane.end[i]);
      if (end - cell >= least) column(static_cast<int>(end) - 1, colour);
    }
  }

  void column(int x, QRgb colour) {
    const int thick = std::max(1, static_cast<int>(view_.scale));
    for (int at = x; at > x - thick; --at) {
      if (at < 0 || at >= width_) continue;
      for (int y = std::max(top_, 0); y < std::min(bottom_, height_); ++y) pixels_of(y)[at] = colour;
    }
  }

  void hatch(ClassId who) {
    for (const Bubble& bubble : seen_pieces(*sources_.document, who, view_)) {
      const double from = x_of(bubble.begin.value), to = x_of(bubble.end.value);
      if (to - from >= 3 * view_.scale) strokes(bubble, from, to);
    }
  }

  void strokes(const Bubble& bubble, double from, double to) {
    const QColor cause = sources_.theme.of(bubble.cause);
    const double strong = sources_.theme.name == ThemeName::HighContrast ? 0.85 : 0.42;
    const QRgb tint = mixed(sources_.theme.bubble, cause, 0.10), stroke = mixed(sources_.theme.bubble, cause, strong);
    const auto origin = static_cast<std::int64_t>(std::floor(from));
    const bool hidden = sources_.paints.hidden.has(bubble.cause);
    const int first = static_cast<int>(std::ceil(std::max(from, 0.0))),
              last = static_cast<int>(std::floor(std::min(to, width_ * 1.0)));
    for (int y = std::max(top_, 0); y < std::min(bottom_, height_); ++y) {
      auto* pixels = pixels_of(y);
      for (int x = first; x < last; ++x)
        pixels[x] = hidden ? sources_.paints.idle
                    : on_hatch(bubble.cause, static_cast<int>((x - origin) % 5040), y - top_, view_.scale) ? stroke
                                                                                                           : tint;
    }
  }

  void error_strip(const Row& row) {
    if (!row.shown().valid() || row.shown().index() >= sources_.twin->cells.size()) return;
    std::fill(line_.begin(), line_.end(), sources_.theme.background.rgb());
    for (const ErrorCell& cell : sources_.twin->cells[row.shown().index()]) {
      const int from = static_cast<int>(std::max(std::floor(x_of(cell.begin.value)), 0.0));
      const int to = static_cast<int>(std::min(std::ceil(x_of(cell.end.value)), width_ * 1.0));
      for (int x = from; x < to; ++x) line_[static_cast<std::size_t>(x)] = error_colour(sources_.theme, cell.error()).rgb();
    }
    put_line(top_, bottom_ - 1);
  }

  void measured(const Row& row) {
    if (!row.shown().valid() || row.shown().index() >= sources_.twin->of_class.size()) return;
    const ClassId who = sources_.twin->of_class[row.shown().index()];
    const Lane* lane = sources_.twin->measured->lanes.find(who, LaneKind::Compute);
    if (lane == nullptr) return;
    std::fill(sums_.begin(), sums_.end(), Sums{});
    add_slices(*lane, view_.visible, sources_.paints, 1, sums_);
    resolve(sums_, sources_.paints.idle, line_);
    end_at(sources_.twin->measured->trace().makespan);
    put_line(top_, bottom_);
    seams(*lane);
  }

  const FrameSources& sources_;
  const FrameView& view_;
  int width_, height_;
  QRgb* pixels_;
  std::ptrdiff_t stride_;
  LaneLevels::Bins bins_ = {};
  std::vector<Sums> sums_;
  std::vector<QRgb> line_;
  int top_ = 0, bottom_ = 0;  // of the box that is being drawn, device pixels
};

}  // namespace

QImage draw_frame(const FrameSources& sources, const std::vector<Row>& rows, const FrameView& view) {
  if (sources.document == nullptr || view.width < 1 || view.height < 1 || view.visible.length().value < 1) return {};
  const auto device = [&](int logical) { return static_cast<int>(std::lround(logical * view.scale)); };
  QImage image(device(view.width), device(view.height), QImage::Format_RGB32);
  image.fill(sources.theme.background);
  image.setDevicePixelRatio(view.scale);
  auto* pixels = reinterpret_cast<QRgb*>(image.bits());
  const std::ptrdiff_t stride = image.bytesPerLine() / static_cast<std::ptrdiff_t>(sizeof(QRgb));
  std::vector<std::span<const Row>> parts;  // of rows that are visible
  const auto first = std::ranges::partition_point(rows, [&](const Row& row) { return row.top + row.height <= view.scroll; });
  const auto last = std::ranges::partition_point(rows, [&](const Row& row) { return row.top < view.scroll + view.height; });
  if (first >= last) return image;
  const std::ptrdiff_t count = last - first, threads = count < kRowsPerThread ? 1 : std::min(QThread::idealThreadCount(), 8);
  for (std::ptrdiff_t t = 0; t < threads; ++t)
    parts.emplace_back(first + count * t / threads, first + count * (t + 1) / threads);
  const auto paint = [&](std::span<const Row> part) { FramePainter(sources, view, pixels, stride).paint(part); };
  if (threads == 1)
    paint(parts.front());
  else
    QtConcurrent::blockingMap(parts, [&](std::span<const Row> part) { guarded([&] { return paint(part), true; })(); });
  return image;
}

}  // namespace foreshard
