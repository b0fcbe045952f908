// What the program lists reaches the panel; a program that fails is told.
#include "gui/strategy/program_lists.h"

#include <gtest/gtest.h>

#include <QSignalSpy>
#include <QTest>

#include "gui/strategy/option_field.h"
#include "gui/strategy/strategy_panel.h"
#include "tests/gui/fake_program.h"

namespace foreshard {

TEST(ProgramLists, OptionsAndNamesReachThePanel) {
  const FakeProgram program(R"(case "$2" in
options) echo '[{"path": "tp", "flag": "--tp", "type": "integer", "values": [], "default": "1", "group": "parallelism"}]' ;;
models) echo '[{"name": "a"}, {"name": "b"}]' ;;
*) echo '[{"name": "c"}]' ;;
esac)");
  StrategyPanel panel;
  ProgramLists lists(program.path(), panel);
  QSignalSpy set(&lists, &ProgramLists::options_set), failed(&lists, &ProgramLists::failed);
  EXPECT_FALSE(lists.busy());
  lists.ask();
  EXPECT_TRUE(lists.busy());
  ASSERT_TRUE(QTest::qWaitFor([&] { return !lists.busy(); }, 20'000));
  EXPECT_EQ(set.count(), 1);
  EXPECT_EQ(failed.count(), 0);
  EXPECT_NE(panel.field("tp"), nullptr);
  EXPECT_EQ(lists.models(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(lists.topologies(), (std::vector<std::string>{"c"}));
}

// Of three questions one ends with an error, whatever it answered, and one with an answer that is no list.
TEST(ProgramLists, FailuresAreTold) {
  const FakeProgram program(R"(case "$2" in
options) echo '[]'; exit 1 ;;
models) echo nonsense ;;
*) echo '[]' ;;
esac)");
  StrategyPanel panel;
  ProgramLists lists(program.path(), panel);
  QSignalSpy failed(&lists, &ProgramLists::failed);
  lists.ask();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !lists.busy(); }, 20'000));
  ASSERT_EQ(failed.count(), 2);
  const QString all = failed[0][0].toString() + failed[1][0].toString();
  EXPECT_TRUE(all.contains("foreshard list options")) << all.toStdString();
  EXPECT_TRUE(all.contains("foreshard list models")) << all.toStdString();
}

}  // namespace foreshard
