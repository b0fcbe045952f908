// Where things are: what Tab visits, what a narrow window keeps, which entry of a menu is chosen and under which it is found.
#include <QApplication>
#include <QComboBox>
#include <QFontDatabase>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <cmath>

#include "gui/palette_box.h"
#include "gui/strategy_panel.h"
#include "gui/timeline_view.h"
#include "tests/gui/open_window.h"

namespace foreshard {
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

TEST_F(Places, ANarrowWindowKeepsTheTimelineAndWholeNumbers) {
  MainWindow& w = open();
  for (const QSize size : {QSize(1280, 800), QSize(1024, 700), QSize(960, 540)}) {
    w.resize(size);
    ASSERT_TRUE(QTest::qWaitFor([&] { return w.width() <= size.width() && w.height() <= size.height(); }, 5'000))
        << w.width() << " x " << w.height();
    QTest::qWait(50);
    EXPECT_GE(w.timeline()->width(), 340) << size.width();
    for (QLabel* value : w.centralWidget()->findChildren<QLabel*>("kpi_value")) {
      EXPECT_LE(value->fontMetrics().horizontalAdvance(value->text()), value->width()) << value->text().toStdString();
      EXPECT_FALSE(value->text().isEmpty());
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
}  // namespace foreshard
