// What the views draw and what a click in them does.
#include <gtest/gtest.h>

#include <QLineEdit>
#include <QPainter>
#include <QScrollBar>
#include <QSignalSpy>
#include <QStyleOption>
#include <QTableView>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <set>

#include "core/network/network.h"
#include "gui/document/bookmark_list.h"
#include "gui/document/facts.h"
#include "gui/document/picked_range.h"
#include "gui/inspector/table_page.h"
#include "gui/inspector/tables.h"
#include "gui/timeline/timeline_view.h"
#include "gui/topology/topology_view.h"
#include "gui/widgets/outline_style.h"
#include "tests/gui/documents.h"

namespace foreshard::views_seen_test {
namespace {

// ---- rows

std::shared_ptr<const Document> uneven_document() { return pipeline_document(played::Fold::None, {.rank = 1, .factor = 2}); }

TEST(Views, TheWorstRankOfARowKeepsHatchesAndWords) {
  const auto document = uneven_document();
  const std::vector<Row> rows = lay_rows(group_ranks(*document, Grouping::Stage), {.row_height = 44}, 1, false);
  const auto split = std::ranges::find_if(rows, [](const Row& row) { return row.worst.valid(); });
  ASSERT_NE(split, rows.end());
  const Theme theme = theme_of(ThemeName::Dark);
  const FrameView view = {{{0}, document->trace().makespan}, 900, 4 * 44, 0, 1};
  const QImage image = draw_frame({.document = document.get(), .theme = theme, .paints = paints_of(theme)}, rows, view);
  const auto boxes = lane_boxes(*split, false);
  const auto worst = std::ranges::find(boxes, BoxKind::Worst, &LaneBox::kind);
  ASSERT_NE(worst, boxes.end());
  EXPECT_GE(worst->height, boxes.front().height);
  // The longest wait of the worst rank: tint and strokes, not one flat colour.
  const std::span<const Bubble> idle = document->pieces_of(split->worst);
  ASSERT_FALSE(idle.empty());
  const Bubble& longest = *std::ranges::max_element(idle, {}, [](const Bubble& b) { return b.end - b.begin; });
  const auto x_of = [&](Nanoseconds t) { return static_cast<int>(t.value * 900 / document->trace().makespan.value); };
  std::set<QRgb> colours;
  for (int x = x_of(longest.begin) + 1; x < x_of(longest.end); ++x)
    for (int y = 1; y + 1 < worst->height; ++y) colours.insert(image.pixel(x, split->top + worst->top + y));
  EXPECT_GE(colours.size(), 2u);
  const TextWidth width_of = [](const QString& text) { return 5.0 * static_cast<double>(text.size()); };
  const auto labels = frame_labels(*document, rows, nullptr, view, width_of);
  EXPECT_TRUE(std::ranges::any_of(labels, [&](const FrameLabel& label) {
    return label.bubble && label.box.top() >= split->top + worst->top && label.box.bottom() <= split->top + split->height;
  }));
}

struct Shown : Viewed<TimelineView> {
  explicit Shown(std::shared_ptr<const Document> of = pipeline_document())
      : Viewed(std::move(of), {kHeaderWidth + 600 + kGutterWidth, 240}) {
    view.show();
    QTest::qWait(1);
    view.wait_for_levels();
  }
};

TEST(Views, MoreRowsThanRoomHaveAScrollBarAndTheNameOfTheirGroup) {
  Shown shown;
  auto* bar = shown.view.findChild<QScrollBar*>();
  ASSERT_NE(bar, nullptr);
  EXPECT_FALSE(bar->isVisible());
  EXPECT_EQ(shown.view.group_above(), nullptr);
  RowState state;
  state.row_height = 60;
  state.open = {1};
  shown.view.set_rows_state(state);
  ASSERT_TRUE(bar->isVisible());
  bar->setValue(2 * 60 + 5);  // stage 0, stage 1, its first rank
  ASSERT_NE(shown.view.group_above(), nullptr);
  EXPECT_EQ(shown.view.group_above()->title, "stage 1");
  const int before = bar->value();
  QTest::keyClick(&shown.view, Qt::Key_Up);
  EXPECT_LT(bar->value(), before);
  bar->setValue(60);  // the group's own row is the first
  EXPECT_EQ(shown.view.group_above(), nullptr);
}

// "256 GPUs" stood beside stages 0 to 9 and was missing beside those with two digits.
TEST(Views, AllRowsSayHowManyRanksTheyHaveOrNone) {
  const auto document =
      make_document(played::result_of({.p = 12, .m = 12, .replicas = 16}), "made", played::cluster_of(12 * 16));
  int with = 0, without = 0;
  for (int points = 7; points <= 15; ++points) {
    Shown shown;
    QFont font = shown.view.font();
    font.setPointSize(points);
    shown.view.setFont(font);
    shown.view.resize(900, 420);  // rows too low for a second line
    shown.view.set_document(document);
    shown.view.wait_for_levels();
    const QImage image = shown.view.grab().toImage();
    std::set<bool> seen;
    for (const Row& row : shown.view.rows()) {
      const int y = kRuler + row.top + row.height / 2;
      if (y + 12 > shown.view.legend_box(0).top()) break;
      bool ink = false;
      for (int x = kHeaderWidth - 18; x < kHeaderWidth - 5; ++x)
        for (int dy = -4; dy <= 4; ++dy) ink |= image.pixel(x, y + dy) != image.pixel(kHeaderWidth - 3, y + dy);
      seen.insert(ink);
    }
    EXPECT_EQ(seen.size(), 1U) << points;
    (seen.contains(true) ? with : without) += 1;
  }
  EXPECT_GT(with, 0);
  EXPECT_GT(without, 0);
}

// ---- range, legend, flags

TEST(Views, MeasuringKeepsTheRangeThatWasDrawn) {
  Shown shown;
  shown.selection.pick({PickedKind::Bubble, 1, {}, {}});
  const TimeRange drawn = {{2'000'000}, {7'000'000}};
  shown.axis.select(drawn);
  QSignalSpy said(&shown.view, &TimelineView::hovered);
  QTest::keyClick(&shown.view, Qt::Key_M);
  ASSERT_TRUE(shown.axis.selected());
  EXPECT_EQ(*shown.axis.selected(), drawn);
  ASSERT_FALSE(said.isEmpty());
  EXPECT_TRUE(said.back().front().toString().startsWith("5.00 ms")) << said.back().front().toString().toStdString();
  shown.axis.select({});
  QTest::keyClick(&shown.view, Qt::Key_M);
  EXPECT_EQ(shown.axis.selected(), range_of(*shown.document, {PickedKind::Bubble, 1, {}, {}}));
}

// An entry that is off keeps its hatch, fainter, so that it can be found again.
TEST(Views, ASwitchedOffEntryOfTheLegendKeepsItsSwatch) {
  Shown shown;
  const std::vector<LegendEntry> entries = legend_entries();
  const auto entry = std::ranges::find_if(entries, [](const LegendEntry& e) { return e.bubble; });
  const QRectF box = shown.view.legend_box(static_cast<std::size_t>(entry - entries.begin()));
  const auto colours = [&] {
    const QImage image = shown.view.grab().toImage();
    std::set<int> found;
    for (int x = static_cast<int>(box.left()) + 3; x < static_cast<int>(box.left()) + 19; ++x)
      found.insert(qGray(image.pixel(x, static_cast<int>(box.center().y()))));
    return found;
  };
  const std::set<int> shown_as = colours();
  ASSERT_GE(shown_as.size(), 2u);
  shown.view.set_hidden(toggled({}, *entry));
  shown.view.wait_for_levels();
  const std::set<int> hidden_as = colours();
  EXPECT_GT(*hidden_as.rbegin() - *hidden_as.begin(), 0.2 * (*shown_as.rbegin() - *shown_as.begin()));  // faint, and to be seen
}

TEST(Views, ABookmarkHasAFlagOnTheRuler) {
  Shown shown;
  const QImage before = shown.view.grab().toImage();
  const Nanoseconds middle = {shown.document->trace().makespan.value / 2};
  shown.view.set_flags({{middle, {}, "here"}});
  const QImage after = shown.view.grab().toImage();
  int changed = 0, accent = 0;
  for (int x = kHeaderWidth + 280; x < kHeaderWidth + 330; ++x)
    for (int y = 0; y < 26; ++y)
      if (before.pixel(x, y) != after.pixel(x, y)) {
        ++changed;
        accent += after.pixel(x, y) == theme_of(ThemeName::Dark).accent.rgb() ? 1 : 0;
      }
  EXPECT_GT(changed, 10);
  EXPECT_GT(accent, 10);
}

// What is typed after a bookmark was set is its note, and no key of the timeline.
TEST(Views, TheNoteOfANewBookmarkIsTypedAtOnce) {
  BookmarkList list;
  list.resize(400, 200);
  list.show();
  const QImage nothing = list.grab().toImage();
  std::set<QRgb> colours;
  for (int x = 0; x < nothing.width(); ++x)
    for (int y = nothing.height() / 3; y < nothing.height(); ++y) colours.insert(nothing.pixel(x, y));
  EXPECT_GT(colours.size(), 3u) << "an empty list says how to fill it";
  list.add({.note = "bookmark 1", .range = {{1000}, {1000}}});
  list.edit_note();
  auto* editor = list.findChild<QLineEdit*>();
  ASSERT_NE(editor, nullptr);
  QTest::keyClicks(editor, "was slow here");
  QTest::keyClick(editor, Qt::Key_Return);
  EXPECT_TRUE(QTest::qWaitFor([&] { return list.bookmarks().front().note == "was slow here"; }, 5'000));
}

// ---- topology

struct ShownTopology : Viewed<TopologyView> {
  ShownTopology() : Viewed(simulated_document(), {1100, 600}) {
    view.show();
    view.wait_for_load();
  }
};

TEST(Views, ARowOfTheHottestLinksPicksItsLink) {
  ShownTopology shown;
  QTest::mouseClick(&shown.view, Qt::LeftButton, {}, shown.view.hottest_box(0).center().toPoint());
  ASSERT_EQ(shown.selection.picked().kind, PickedKind::Link);
  const auto first = static_cast<std::size_t>(shown.selection.picked().index);
  const std::int64_t end = shown.document->trace().makespan.value;
  const auto& links = shown.document->trace().links;
  const auto used = [&](const LinkClass& link) {
    return link.bytes / (link.bandwidth.value * static_cast<double>(end) * 1e-9);
  };
  for (const LinkClass& link : links) EXPECT_LE(used(link), used(links[first]) * 1.001) << link.name;
}

TEST(Views, AClickedLinkIsCalledByItsOwnName) {
  ShownTopology shown;
  const Network network(*shown.document->cluster);
  int named = 0;
  for (const int node : {0, 1}) {
    shown.view.show_node(node);
    for (const LinkLine& line : shown.view.picture().lines) {
      if (line.link_class < 0) continue;
      const Picked picked = {PickedKind::Link, line.link_class, {}, line.link};
      EXPECT_EQ(facts_of(*shown.document, picked, nullptr).title.toStdString(), network.name(line.link));
      ++named;
    }
  }
  EXPECT_GT(named, 10);
  const auto line = std::ranges::find_if(shown.view.picture().lines, [](const LinkLine& l) { return l.link_class >= 0; });
  QTest::mouseClick(&shown.view, Qt::LeftButton, {}, ((line->from + line->to) / 2).toPoint());
  ASSERT_TRUE(shown.selection.picked().link.valid());
  EXPECT_NE(network.name(shown.selection.picked().link).find("node1"), std::string::npos);
}

// ---- tables

TEST(Views, TheFilterOfATableSaysHowManyRowsItLeaves) {
  TimeAxis axis;
  Selection selection;
  TablePage page(axis, selection);
  const auto document = pipeline_document();
  axis.set_extent({{0}, document->trace().makespan});
  page.set_document(document);
  page.resize(700, 400);
  page.show();
  page.show_kind(TableKind::Bubbles);
  const auto all = static_cast<int>(document->bubbles.size());
  EXPECT_EQ(page.note(), QString("%1 rows").arg(all));
  page.findChild<QLineEdit*>()->setText("drain");
  const int some = page.findChild<QTableView*>()->model()->rowCount();
  ASSERT_LT(some, all);
  EXPECT_EQ(page.note(), QString("%1 of %2 rows").arg(some).arg(all));
}

TEST(Views, HeadersStandOverTheirColumn) {
  const auto document = pipeline_document();
  const auto table = bubble_table(document);
  for (int c = 0; c < table->columnCount(); ++c)
    EXPECT_EQ(table->headerData(c, Qt::Horizontal, Qt::TextAlignmentRole),
              table->data(table->index(0, c), Qt::TextAlignmentRole))
        << c;
}

// ---- edges

// What the outline style draws on `ground`.
QImage drawn(QStyle::PrimitiveElement element, QStyleOption&& option, ThemeName theme, QSize size, const QColor& ground) {
  QImage image(size, QImage::Format_RGB32);
  image.fill(ground);
  QPainter painter(&image);
  if (option.rect.isNull()) option.rect = image.rect();
  option.palette = qt_palette(theme_of(theme));
  OutlineStyle().drawPrimitive(element, &option, &painter);
  painter.end();
  return image;
}

TEST(Views, ACheckBoxThatIsOffCanBeSeen) {
  for (const ThemeName name : {ThemeName::Dark, ThemeName::Light, ThemeName::HighContrast}) {
    const Theme theme = theme_of(name);
    QStyleOptionButton option;
    option.rect = {1, 1, 15, 15};
    option.state = QStyle::State_Enabled | QStyle::State_Off;
    const QImage image = drawn(QStyle::PE_IndicatorCheckBox, std::move(option), name, {17, 17}, theme.panel);
    // The edge stands out from what is around it by the 3:1 that WCAG asks of controls.
    const auto bright = [](QColor c) {
      const auto linear = [](double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
      return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF()) + 0.05;
    };
    const double edge = bright(image.pixelColor(1, 8)), around = bright(theme.panel);
    EXPECT_GE(std::max(edge, around) / std::min(edge, around), 3.0) << static_cast<int>(name);
  }
}

TEST(Views, TextFieldsHaveAnEdgeInHighContrast) {
  QStyleOptionFrame option;
  option.lineWidth = 1;
  option.state = QStyle::State_Enabled;
  const QImage image = drawn(QStyle::PE_FrameLineEdit, std::move(option), ThemeName::HighContrast, {60, 24}, Qt::black);
  for (const int inset : {0, 1}) EXPECT_EQ(image.pixelColor(30, inset), theme_of(ThemeName::HighContrast).text) << inset;
}

TEST(Views, TabBarsHaveNoLineOfTheirOwn) {
  const QImage image = drawn(QStyle::PE_FrameTabBarBase, QStyleOptionTabBarBase(), ThemeName::Dark, {60, 4}, Qt::black);
  for (int x = 0; x < 60; ++x)
    for (int y = 0; y < 4; ++y) ASSERT_EQ(image.pixelColor(x, y), QColor(Qt::black));
}

}  // namespace
}  // namespace foreshard::views_seen_test
