// Where things are: what Tab visits, what a narrow window keeps, which entry of a menu is chosen and under which it is found.
#include <QApplication>
#include <QComboBox>
#include <QDockWidget>
#include <QFontDatabase>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <cmath>

#include "gui/strategy/strategy_panel.h"
#include "gui/timeline/timeline_legend.h"
#include "gui/timeline/timeline_view.h"
#include "gui/window/dock_rail.h"
#include "gui/window/help_overlay.h"
#include "gui/window/palette_box.h"
#include "tests/gui/open_window.h"

namespace foreshard::places_test {
namespace {

class Places : public OpenWindow {};

// Panel, centre, right; never into a dock behind another.
TEST_F(Places, TabGoesFromLeftToRightThroughWhatIsSeen) {
  MainWindow& w = open();
  w.strategy_panel()->findChild<QComboBox*>()->setFocus();
  const auto seen = [&](QWidget* stop) {
    QWidget* const there = w.childAt(stop->mapTo(&w, stop->rect().center()));
    return there == stop || (there != nullptr && stop->isAncestorOf(there));
  };
  int before = 0;
  for (int i = 0; i < 300; ++i) {
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
    QWidget* const now = QApplication::focusWidget();
    ASSERT_NE(now, nullptr);
    ASSERT_TRUE(QTest::qWaitFor([&] { return seen(now); }, 1000))
        << i << " " << now->metaObject()->className() << " " << now->accessibleName().toStdString();
    const int pane = w.strategy_panel()->isAncestorOf(now) ? 0 : w.centralWidget()->isAncestorOf(now) ? 1 : 2;
    if (pane < before) {
      EXPECT_EQ(before, 2);  // round
      return;
    }
    before = pane;
  }
  FAIL() << "Tab never came round";
}

TEST_F(Places, ANarrowWindowFoldsItsDocksAwayAndKeepsWholeNumbers) {
  MainWindow& w = open();
  auto* inspector = w.findChild<QDockWidget*>("dock_inspector");
  auto* search = w.findChild<QDockWidget*>("dock_search");
  auto* strategy = w.findChild<QDockWidget*>("dock_strategy");
  auto* rail = w.findChild<DockRail*>("rail_right");
  EXPECT_FALSE(rail->isVisible());
  EXPECT_TRUE(w.timeline()->more_box().isEmpty());
  for (const QSize size : {QSize(1280, 800), QSize(1024, 700), QSize(960, 540)}) {
    w.resize(size);
    ASSERT_TRUE(QTest::qWaitFor([&] { return w.width() <= size.width() && w.height() <= size.height(); }, 5'000))
        << w.width() << " x " << w.height();
    QTest::qWait(50);
    EXPECT_TRUE(rail->isVisible());
    EXPECT_TRUE(strategy->isHidden() && inspector->isHidden() && search->isHidden());
    EXPECT_GE(w.timeline()->width(), size.width() - 100);
    EXPECT_LE(w.timeline()->legend_box(0).height(), kLegendLine);
    for (QLabel* value : w.centralWidget()->findChildren<QLabel*>("kpi_value")) {
      EXPECT_LE(value->fontMetrics().horizontalAdvance(value->text()), value->width()) << value->text().toStdString();
      EXPECT_FALSE(value->text().isEmpty());
    }
  }
  ASSERT_FALSE(w.timeline()->more_box().isEmpty());  // one line, and the rest behind a click
  QTest::mouseClick(w.timeline(), Qt::LeftButton, {}, w.timeline()->more_box().center().toPoint());
  EXPECT_TRUE(w.timeline()->more_box().isEmpty());
  EXPECT_FALSE(w.timeline()->legend_box(legend_entries().size() - 1).isEmpty());
  // One of a side at a time; a second click closes it.
  const auto click = [&](const QString& title) {
    for (QAbstractButton* button : rail->findChildren<QAbstractButton*>())
      if (button->text() == title) QTest::mouseClick(button, Qt::LeftButton);
  };
  click("Search");
  EXPECT_TRUE(search->isVisible());
  click("Inspector");
  EXPECT_TRUE(inspector->isVisible());
  EXPECT_TRUE(search->isHidden());
  click("Inspector");
  EXPECT_TRUE(inspector->isHidden());
  Workspace kept = w.workspace();  // has the layout of the wide window
  w.resize(1600, 1000);
  ASSERT_TRUE(QTest::qWaitFor([&] { return strategy->isVisible(); }, 5'000));
  EXPECT_FALSE(rail->isVisible());
  EXPECT_FALSE(inspector->isHidden() || search->isHidden());
  kept.geometry.clear();
  w.show_workspace(kept);
  EXPECT_FALSE(strategy->isHidden() || inspector->isHidden() || search->isHidden());
}

TEST_F(Places, AFirstWindowFitsItsScreen) {
  EXPECT_EQ(fitting_size({1920, 1080}), QSize(1600, 1000));
  EXPECT_EQ(fitting_size({1366, 728}), QSize(1350, 680));
}

TEST_F(Places, NoTitleOfACardIsCut) {
  MainWindow& w = open();
  Choices part = small();
  part.strategy["dp"] = "2";  // half of the cluster: two cards have something to say of it
  w.keys().action("plan.baseline")->trigger();
  w.set_choices(part, "test");
  ASSERT_TRUE(settled());
  for (const int width : {1024, 1290, 1366, 1600, 1920}) {
    w.resize(width, 900);
    QTest::qWait(50);
    for (const char* kind : {"kpi_name", "kpi_aside"})
      for (QLabel* label : w.centralWidget()->findChildren<QLabel*>(kind))
        EXPECT_FALSE(label->text().contains(QChar(0x2026))) << width << ": " << label->text().toStdString();
  }
}

// Every row inside the window, at its smallest and at a large one.
TEST_F(Places, F1HasRoomForEveryKey) {
  MainWindow& w = open();
  const std::vector<HelpGroup> groups = help_groups(w.keys());
  int before = 0;
  for (const QSize room : {QSize(640, 480), QSize(860, 600), QSize(1024, 700), QSize(1600, 1000)}) {
    const HelpLayout layout = lay_help(groups, room, w.font());
    ASSERT_EQ(layout.corners.size(), groups.size()) << room.width();
    const QFontMetrics metrics(layout.font);
    EXPECT_GE(metrics.height(), before);  // larger where there is room
    before = metrics.height();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      EXPECT_LE(layout.corners[g].x() + layout.column, room.width());
      EXPECT_LE(layout.corners[g].y() + layout.line * (std::ssize(groups[g].rows) + 1), room.height()) << room.width();
      for (const auto& [keys, what] : groups[g].rows) {
        EXPECT_LE(metrics.horizontalAdvance(keys), layout.keys);
        EXPECT_LE(layout.keys + 14 + metrics.horizontalAdvance(what), layout.column) << what.toStdString();
      }
    }
  }
}

// Rows, arrows, memory, theme, language: the menu shows which is chosen.
TEST_F(Places, MenusShowWhatIsChosen) {
  MainWindow& w = open();
  for (const char* name :
       {"view.rows_stage", "view.arrows_chain", "view.memory_device", "view.theme_dark", "view.language_en"}) {
    ASSERT_NE(w.keys().action(name), nullptr) << name;
    EXPECT_TRUE(w.keys().action(name)->isChecked()) << name;
  }
  w.keys().action("view.theme_light")->trigger();
  EXPECT_TRUE(w.keys().action("view.theme_light")->isChecked());
  EXPECT_FALSE(w.keys().action("view.theme_dark")->isChecked());
  w.keys().action("view.rows_node")->trigger();
  EXPECT_FALSE(w.keys().action("view.rows_stage")->isChecked());
  const bool chinese = !QFontDatabase::families(QFontDatabase::SimplifiedChinese).isEmpty();
  EXPECT_EQ(w.keys().action("view.language_zh_CN")->isEnabled(), chinese);
}

TEST_F(Places, AnExportIsFoundByItsMenu) {
  MainWindow& w = open();
  QTest::keyClick(&w, Qt::Key_K, Qt::ControlModifier);
  QTest::keyClicks(w.palette_box()->line(), "export");
  EXPECT_TRUE(w.palette_box()->list()->item(0)->text().startsWith("Export > "))
      << w.palette_box()->list()->item(0)->text().toStdString();
  QTest::keyClick(w.palette_box()->line(), Qt::Key_Escape);
}

}  // namespace
}  // namespace foreshard::places_test
