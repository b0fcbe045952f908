// The legend, the strip of the whole run and the hatches of printed pictures: values first, then the widget.
#include <gtest/gtest.h>

#include <QRegularExpression>
#include <QTest>
#include <algorithm>
#include <set>

#include "gui/document/export.h"
#include "gui/timeline/timeline_view.h"
#include "gui/widgets/drawn_hatches.h"
#include "tests/gui/documents.h"

namespace foreshard::legend_test {
namespace {

double ten_each(const QString& text) { return 10.0 * static_cast<double>(text.size()); }

TEST(Legend, EveryEntryHasAPlaceOfItsOwnAtAnyWidth) {
  const std::vector<LegendEntry> entries = legend_entries();
  ASSERT_EQ(entries.size(), 11u + kBubbleCauses);
  for (const double width : {120.0, 400.0, 900.0, 4000.0}) {
    const std::vector<QRectF> boxes = lay_legend(entries, width, ten_each);
    ASSERT_EQ(boxes.size(), entries.size());
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      EXPECT_GE(boxes[i].width(), ten_each(entries[i].words));
      EXPECT_TRUE(boxes[i].left() == 10 || boxes[i].right() <= width);  // only an entry alone on its line may be too wide
      for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(boxes[i].intersects(boxes[j])) << i << " " << j;
    }
  }
  EXPECT_EQ(lay_legend(entries, 4000, ten_each).back().top(), 1);  // one line is enough
}

TEST(Legend, LettersTellWhatColoursTell) {
  std::set<QString> letters;
  for (const LegendEntry& entry : legend_entries())
    EXPECT_TRUE(entry.bubble || (!entry.letter.isEmpty() && letters.insert(entry.letter).second));
}

TEST(Legend, HidingAndShowing) {
  const std::vector<LegendEntry> entries = legend_entries();
  for (const LegendEntry& entry : entries) {
    const Hidden one = toggled({}, entry);
    for (const LegendEntry& other : entries) EXPECT_EQ(other.hidden_by(one), &other == &entry) << other.words.toStdString();
    EXPECT_EQ(toggled(one, entry), Hidden{});
    const Hidden rest = only({}, entry);
    for (const LegendEntry& other : entries)
      EXPECT_EQ(other.hidden_by(rest), other.bubble == entry.bubble && &other != &entry) << other.words.toStdString();
    EXPECT_EQ(only(rest, entry), Hidden{});
  }
}

struct Shown : Viewed<TimelineView> {
  Shown() : Viewed(pipeline_document(), {kHeaderWidth + 600 + kGutterWidth, 300}) {
    view.set_overview(true);
    view.show();
    QTest::qWait(1);
    view.wait_for_levels();
  }
  QImage picture() {
    view.wait_for_levels();
    return view.grab().toImage();
  }
};

// A forward cell loses its colour and gets it back; idle time looks as before, so the share of it stays right.
TEST(Legend, AClickOnAnEntryGreysItsWorkAndNothingElse) {
  Shown shown;
  ASSERT_EQ(legend_entries().front().paint, Paint::Forward);
  std::int32_t forward = -1;
  for (std::size_t s = 0; s < shown.document->trace().spans.size() && forward < 0; ++s)
    if (shown.view.place_of({PickedKind::Span, static_cast<std::int32_t>(s), {}}).width() > 8)
      forward = static_cast<std::int32_t>(s);
  ASSERT_GE(forward, 0);
  const QRectF cell = shown.view.place_of({PickedKind::Span, forward, {}});
  const QPoint in_cell = (cell.topLeft() + QPointF(2, 2)).toPoint();
  const QPoint idle = shown.view.place_of({PickedKind::Bubble, 0, {}}).center().toPoint();
  const QImage before = shown.picture();
  const QPoint entry = shown.view.legend_box(0).center().toPoint();
  QTest::mouseClick(&shown.view, Qt::LeftButton, {}, entry);
  EXPECT_TRUE(shown.view.hidden().has(Paint::Forward));
  const QImage grey = shown.picture();
  EXPECT_NE(grey.pixelColor(in_cell), before.pixelColor(in_cell));
  EXPECT_LT(grey.pixelColor(in_cell).saturation(), 90);
  EXPECT_NE(grey.pixelColor(in_cell), grey.pixelColor(idle));  // it does not look idle
  EXPECT_EQ(grey.pixelColor(idle), before.pixelColor(idle));
  QTest::mouseClick(&shown.view, Qt::LeftButton, {}, entry);
  EXPECT_EQ(shown.picture(), before);
  QTest::mouseClick(&shown.view, Qt::LeftButton, Qt::ControlModifier, entry);
  EXPECT_FALSE(shown.view.hidden().has(Paint::Forward));
  EXPECT_TRUE(shown.view.hidden().has(Paint::Backward));
}

// Four stages, each in a class of its own or of two replicas alike: the mean over ranks is 1 - the share of idle time.
TEST(Overview, TheMeanOfItsBinsIsTheBusyShareOfTheRun) {
  const auto document = pipeline_document();
  const std::vector<float> busy = busy_by_bin(*document, paints_of(theme_of(ThemeName::Dark)), 1000);
  double mean = 0;
  for (const float share : busy) {
    EXPECT_GE(share, 0);
    EXPECT_LE(share, 1.0001);
    mean += static_cast<double>(share) / 1000;
  }
  double idle = 0, ranks = 0;
  for (const Bubble& bubble : document->bubbles) {
    const auto members = static_cast<double>(document->trace().classes[bubble.who.index()].members.size());
    idle += members * static_cast<double>((bubble.end - bubble.begin).value);
  }
  for (const RankClass& c : document->trace().classes) ranks += static_cast<double>(c.members.size());
  EXPECT_NEAR(mean, 1 - idle / ranks / static_cast<double>(document->trace().makespan.value), 0.002);
}

TEST(Overview, AClickGoesThereAndADragFollows) {
  Shown shown;
  const std::int64_t all = shown.axis.extent().length().value;
  shown.axis.show({{0}, {all / 10}});
  QTest::mouseClick(&shown.view, Qt::LeftButton, {}, {kHeaderWidth + 300, kOverview / 2});  // the middle of 600 pixels
  const auto middle = [&] {
    return static_cast<double>(shown.axis.visible().begin.value + shown.axis.visible().end.value) / 2;
  };
  EXPECT_NEAR(middle(), static_cast<double>(all) / 2, static_cast<double>(all) / 300);
  EXPECT_EQ(shown.axis.visible().length().value, all / 10);
  EXPECT_FALSE(shown.axis.selected());
  QTest::mousePress(&shown.view, Qt::LeftButton, {}, {kHeaderWidth + 300, kOverview / 2});
  QTest::mouseMove(&shown.view, {kHeaderWidth + 450, kOverview / 2});
  QTest::mouseRelease(&shown.view, Qt::LeftButton, {}, {kHeaderWidth + 450, kOverview / 2});
  EXPECT_NEAR(middle(), static_cast<double>(all) * 3 / 4, static_cast<double>(all) / 300);
}

// A square of 10 at (20, 30), upright lines every 4: at x = 20, 24, 28.
TEST(DrawnHatches, LinesStandWhereThePatternHasThem) {
  const std::string svg =
      "<svg><defs><pattern id=\"p\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(0)\">"
      "<rect width=\"4\" height=\"4\" fill=\"#eeeeee\"/><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"4\" "
      "stroke=\"#112233\"/></pattern>"
      "</defs><rect x=\"20\" y=\"30\" width=\"10\" height=\"10\" fill=\"url(#p)\"/><rect x=\"1\" y=\"2\" width=\"3\" "
      "height=\"4\" fill=\"#123456\"/></svg>";
  const std::string drawn = with_drawn_hatches(svg);
  EXPECT_NE(drawn.find("<rect x=\"20\" y=\"30\" width=\"10\" height=\"10\" fill=\"#eeeeee\"/><path d=\""), std::string::npos);
  EXPECT_NE(drawn.find("stroke=\"#112233\""), std::string::npos);
  EXPECT_NE(drawn.find("fill=\"#123456\"/></svg>"), std::string::npos);
  for (const char* x : {"20.00", "24.00", "28.00"})
    EXPECT_NE(drawn.find(std::string("M") + x + " "), std::string::npos) << x << drawn;
  EXPECT_EQ(drawn.find("M32"), std::string::npos);
}

TEST(DrawnHatches, APrintedPictureHasNoPatternsAndItsLinesStayInTheirBoxes) {
  const auto document = pipeline_document();
  const std::string svg = picture_svg(*document);
  ASSERT_NE(svg.find("fill=\"url(#bubble-"), std::string::npos);
  const QString drawn = QString::fromStdString(with_drawn_hatches(svg));
  EXPECT_FALSE(drawn.contains("fill=\"url(#"));
  static const QRegularExpression pair(
      "<(?:rect x=\"([-0-9.]+)\" y=\"([-0-9.]+)\" width=\"([0-9.]+)\" height=\"([0-9.]+)\"|"
      "path d=\"([^\"]+)\") fill=\"#\\w+\"/><path d=\"([^\"]+)\" fill=\"none\"");
  static const QRegularExpression number("-?[0-9]+\\.[0-9]+");
  static const QRegularExpression rectangle("M([-0-9.]+) ([-0-9.]+)h([0-9.]+)v([0-9.]+)");
  int boxes = 0, ends = 0;
  for (auto found = pair.globalMatch(drawn); found.hasNext(); ++boxes) {
    const auto match = found.next();
    std::vector<QRectF> places;
    const auto place = [&](const QRegularExpressionMatch& of) {
      places.push_back(
          QRectF(of.captured(1).toDouble(), of.captured(2).toDouble(), of.captured(3).toDouble(), of.captured(4).toDouble())
              .adjusted(-0.02, -0.02, 0.02, 0.02));
    };
    if (match.captured(5).isEmpty()) place(match);
    for (auto one = rectangle.globalMatch(match.captured(5)); one.hasNext();) place(one.next());
    std::vector<double> values;
    for (auto one = number.globalMatch(match.captured(6)); one.hasNext();) values.push_back(one.next().captured().toDouble());
    for (std::size_t i = 0; i + 1 < values.size(); i += 2, ++ends)
      EXPECT_TRUE(
          std::ranges::any_of(places, [&](const QRectF& box) { return box.contains(QPointF(values[i], values[i + 1])); }));
  }
  EXPECT_GT(boxes, 8);
  EXPECT_GT(ends, 100);
}

}  // namespace
}  // namespace foreshard::legend_test
