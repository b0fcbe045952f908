#include <gtest/gtest.h>

#include <QApplication>
#include <QLineEdit>
#include <QListWidget>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>

#include "gui/widgets/fuzzy.h"
#include "gui/window/help_overlay.h"
#include "gui/window/key_map.h"
#include "gui/window/palette_box.h"

namespace foreshard::palette_test {

TEST(Fuzzy, LettersInOrderBetterAtWordsAndTogether) {
  EXPECT_EQ(fuzzy_score("xyz", "Search strategies"), 0);
  EXPECT_EQ(fuzzy_score("ss", "S"), 0);
  EXPECT_GT(fuzzy_score("", "anything"), 0);
  EXPECT_GT(fuzzy_score("ss", "Search strategies"), fuzzy_score("ss", "Press a key"));
  EXPECT_GT(fuzzy_score("OPEN", "open recent"), 0);
  EXPECT_GT(fuzzy_score("搜索", "搜索策略"), 0);
}

// The answer of a search over all ways to place the letters.
static bool fits(const QString& query, const QString& text) {
  qsizetype at = 0;
  for (const QChar c : query) {
    at = text.indexOf(c, at);
    if (at < 0) return false;
    ++at;
  }
  return true;
}

TEST(Fuzzy, FitsExactlyWhatHasTheLettersInOrder) {
  std::uint32_t seed = 7;
  const auto word = [&](int most) {
    QString text;
    for (int i = 0, n = 1 + static_cast<int>((seed = seed * 1664525u + 1013904223u) >> 16) % most; i < n; ++i)
      text += QChar('a' + static_cast<int>((seed = seed * 1664525u + 1013904223u) >> 16) % 4);
    return text;
  };
  int both[2] = {0, 0};
  for (int i = 0; i < 3000; ++i) {
    const QString query = word(4), text = word(9);
    const bool expected = fits(query, text);
    EXPECT_EQ(fuzzy_score(query, text) > 0, expected) << query.toStdString() << " in " << text.toStdString();
    ++both[expected ? 1 : 0];
  }
  EXPECT_GT(both[0], 300);
  EXPECT_GT(both[1], 300);
}

TEST(PaletteBox, TypingFiltersAndReturnActs) {
  QWidget window;
  window.resize(800, 600);
  PaletteBox box(&window);
  window.show();
  QString done;
  box.open("?", {{"Open file", "Ctrl+O", [&] { done = "open"; }}, {"Search strategies", {}, [&] { done = "search"; }}});
  EXPECT_TRUE(box.isVisible());
  EXPECT_EQ(box.list()->count(), 2);
  QTest::keyClicks(box.line(), "stra");
  EXPECT_EQ(box.list()->count(), 1);
  QTest::keyClick(box.line(), Qt::Key_Return);
  EXPECT_EQ(done, "search");
  EXPECT_FALSE(box.isVisible());
  box.open("?", {{"Open file", {}, [&] { done = "open"; }}, {"Other", {}, [&] { done = "other"; }}});
  QTest::keyClick(box.line(), Qt::Key_Down);
  QTest::keyClick(box.line(), Qt::Key_Return);
  EXPECT_EQ(done, "other");
  box.open("?", {{"Open file", {}, {}}});
  QTest::keyClicks(box.line(), "zzz");
  QTest::keyClick(box.line(), Qt::Key_Return);  // nothing fits: nothing happens
  EXPECT_TRUE(box.isVisible());
  QTest::keyClick(box.line(), Qt::Key_Escape);
  EXPECT_FALSE(box.isVisible());
}

TEST(KeyMap, KeysAreKeptTakenAndReset) {
  const QTemporaryDir folder;
  QSettings settings(folder.filePath("s.ini"), QSettings::IniFormat);
  QAction open("&Open …"), find("查找(&F) …");
  EXPECT_EQ(plain_text(open), "Open");
  EXPECT_EQ(plain_text(find), "查找");
  {
    KeyMap keys(settings);
    keys.add("file.open", &open, QKeySequence("Ctrl+O"));
    keys.add("edit.find", &find, QKeySequence("Ctrl+F"));
    EXPECT_EQ(keys.holder(QKeySequence("Ctrl+F"), &open)->name, "edit.find");
    EXPECT_EQ(keys.holder(QKeySequence("Ctrl+F"), &find), nullptr);
    keys.rebind("file.open", QKeySequence("Ctrl+F"));
    EXPECT_EQ(open.shortcut(), QKeySequence("Ctrl+F"));
    EXPECT_TRUE(find.shortcut().isEmpty());  // two actions with one key would both be dead
  }
  KeyMap again(settings);
  again.add("file.open", &open, QKeySequence("Ctrl+O"));
  again.add("edit.find", &find, QKeySequence("Ctrl+F"));
  EXPECT_EQ(open.shortcut(), QKeySequence("Ctrl+F"));
  EXPECT_TRUE(find.shortcut().isEmpty());
  again.reset();
  EXPECT_EQ(open.shortcut(), QKeySequence("Ctrl+O"));
  EXPECT_EQ(find.shortcut(), QKeySequence("Ctrl+F"));
  EXPECT_TRUE(settings.allKeys().isEmpty());
  const auto groups = help_groups(again);
  ASSERT_GE(groups.size(), 2u);
  EXPECT_EQ(groups[0].rows[0].second, "Open");
}

}  // namespace foreshard::palette_test
