#include "gui/document/lane_raster.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace foreshard::lane_raster_test {
namespace {

Paints grey_paints() {  // paint p: red = 20 (p + 1); idle black
  Paints paints;
  for (std::size_t p = 0; p < kPaints; ++p)
    for (std::size_t s = 0; s < kShades; ++s) paints.colours[p * kShades + s] = qRgb(static_cast<int>(20 * (p + 1)), 100, 0);
  paints.idle = paints.empty = qRgb(0, 0, 200);
  return paints;
}

Lane random_lane(unsigned seed, int count) {  // without overlap, as on a compute stream
  std::mt19937 random(seed);
  Lane lane;
  std::int64_t at = 0;
  for (int i = 0; i < count; ++i) {
    at += static_cast<std::int64_t>(random() % 90);
    const std::int64_t end = at + 1 + static_cast<std::int64_t>(random() % 200);
    lane.push({at}, {end}, i, {static_cast<Paint>(random() % kPaints), 0, true});
    at = end;
  }
  return lane;
}

std::vector<QRgb> drawn(const Lane& lane, TimeRange visible, int width, const Paints& paints) {
  std::vector<Sums> sums(static_cast<std::size_t>(width));
  std::vector<QRgb> line(sums.size());
  add_slices(lane, visible, paints, 1, sums);
  resolve(sums, paints.idle, line);
  return line;
}

// The obvious way: the mean over every nanosecond of the pixel.
QRgb mean_of(const Lane& lane, std::int64_t from, std::int64_t to, const Paints& paints) {
  double red = 0, green = 0, blue = 0;
  for (std::int64_t t = from; t < to; ++t) {
    QRgb colour = paints.idle;
    for (std::size_t i = 0; i < lane.size(); ++i)
      if (lane.begin[i] <= t && t < lane.end[i]) colour = paints.of(lane.look_of(i));
    red += qRed(colour), green += qGreen(colour), blue += qBlue(colour);
  }
  const auto n = static_cast<double>(to - from);
  return qRgb(static_cast<int>(std::lround(red / n)), static_cast<int>(std::lround(green / n)),
              static_cast<int>(std::lround(blue / n)));
}

int distance(QRgb a, QRgb b) {
  return std::max({std::abs(qRed(a) - qRed(b)), std::abs(qGreen(a) - qGreen(b)), std::abs(qBlue(a) - qBlue(b))});
}

TEST(LaneRaster, APixelIsTheMeanOfAllItsNanoseconds) {
  const Paints paints = grey_paints();
  const Lane lane = random_lane(3, 40);
  const TimeRange visible = {{130}, {130 + 37 * 64}};  // 64 pixels of 37 ns
  const std::vector<QRgb> line = drawn(lane, visible, 64, paints);
  for (int p = 0; p < 64; ++p)
    EXPECT_LE(distance(line[static_cast<std::size_t>(p)], mean_of(lane, 130 + 37 * p, 130 + 37 * (p + 1), paints)), 1) << p;
}

TEST(LaneRaster, TheShareOfIdleTimeIsRightAtEveryZoom) {
  // Only idle time is blue, 200 of it: the mean blue of a line over 200 is its idle share.
  const Paints paints = grey_paints();
  const Lane lane = random_lane(4, 500);
  for (const int width : {7, 100, 1333}) {
    const std::vector<QRgb> line = drawn(lane, {{0}, {lane.last_end}}, width, paints);
    double blue = 0;
    for (const QRgb pixel : line) blue += qBlue(pixel);
    const double idle = 1 - static_cast<double>(lane.busy_until(lane.last_end)) / static_cast<double>(lane.last_end);
    EXPECT_NEAR(blue / width / 200, idle, 0.003) << width;
  }
}

TEST(LaneRaster, LevelsOfDetailShowWhatTheSlicesShow) {
  const Paints paints = grey_paints();
  const Lane lane = random_lane(5, 20'000);
  const TimeRange whole = {{0}, {lane.last_end}};
  const LaneLevels levels(lane, whole, paints);
  for (const double share : {1.0, 0.6, 0.35})
    for (const int width : {50, 400, 1400}) {
      const auto begin = static_cast<std::int64_t>(0.2 * (1 - share) * static_cast<double>(lane.last_end));
      const TimeRange visible = {{begin}, {begin + static_cast<std::int64_t>(share * static_cast<double>(lane.last_end))}};
      ASSERT_TRUE(levels.fine_enough(visible, width));
      std::vector<Sums> sums(static_cast<std::size_t>(width));
      std::vector<QRgb> summed(sums.size()), quick(sums.size());
      levels.add(visible, 1, sums);
      resolve(sums, paints.idle, summed);
      levels.draw(LaneLevels::bins_for(whole, visible, width), paints.idle, quick);
      const std::vector<QRgb> exact = drawn(lane, visible, width, paints);
      for (const std::vector<QRgb>& line : {summed, quick}) {
        double difference = 0, blue = 0;
        for (std::size_t p = 0; p < line.size(); ++p) {
          difference += distance(line[p], exact[p]);
          blue += qBlue(line[p]) - qBlue(exact[p]);
        }
        // A bin that straddles two pixels is shared out or goes to one of them: right on the mean; on one pixel, with colours as
        // wild as these, some units off.
        EXPECT_LT(difference / width, 20) << share << " of the time on " << width << " pixels";
        EXPECT_LT(std::abs(blue) / width, 2) << share << " of the time on " << width << " pixels";
      }
    }
  EXPECT_FALSE(levels.fine_enough({{0}, {lane.last_end / 10}}, 1400));
}

TEST(LaneRaster, SlicesThatOverlapDoNotOutshineOthers) {
  const Paints paints = grey_paints();
  Lane lane;
  lane.push({0}, {100}, 0, {Paint::Forward, 0, true});         // red 20
  lane.push({0}, {100}, 1, {Paint::WeightGradient, 0, true});  // red 60
  EXPECT_EQ(drawn(lane, {{0}, {100}}, 1, paints).front(), qRgb(40, 100, 0));
}

TEST(LaneRaster, LaterChunksAreLighter) {
  const Paints paints = paints_of(theme_of(ThemeName::Dark));
  for (std::uint8_t s = 1; s < kShades; ++s)
    EXPECT_GT(qRed(paints.of({Paint::Forward, s, true})),
              qRed(paints.of({Paint::Forward, static_cast<std::uint8_t>(s - 1), true})));
}

}  // namespace
}  // namespace foreshard::lane_raster_test
