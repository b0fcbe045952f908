#include "gui/language.h"

#include <gtest/gtest.h>

#include <QCoreApplication>
#include <QFile>

#include "core/json.h"
#include "gui/kpi_strip.h"
#include "gui/main_window.h"
#include "gui/option_field.h"

namespace foreshard {

TEST(Language, ChineseAsLongAsItLives) {
  EXPECT_EQ(MainWindow::tr("Topology"), "Topology");
  {
    const Language chinese("zh_CN");
    EXPECT_EQ(MainWindow::tr("Topology"), "拓扑");
    EXPECT_TRUE(option_label("global_batch").contains("批"));
    EXPECT_EQ(KpiStrip::tr("%n stage(s)", nullptr, 16), "16 个阶段");
    EXPECT_EQ(QCoreApplication::translate("Facts", "The whole iteration"), "整个迭代");
  }
  EXPECT_EQ(MainWindow::tr("Topology"), "Topology");
}

TEST(Language, EnglishPlurals) {
  const Language english("en");
  EXPECT_EQ(KpiStrip::tr("%n stage(s)", nullptr, 1), "1 stage");
  EXPECT_EQ(KpiStrip::tr("%n stage(s)", nullptr, 2), "2 stages");
}

TEST(Language, OneThatIsNotSpokenIsEnglish) {
  EXPECT_FALSE(speaks("tlh"));
  const Language klingon("tlh");
  EXPECT_EQ(MainWindow::tr("Topology"), "Topology");
}

}  // namespace foreshard
