// The list of changes that would shorten a bubble: shown while it is asked, a click chooses one.
#include "gui/strategy/suggestion_list.h"

#include <gtest/gtest.h>

#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>

#include "tests/gui/fake_program.h"

namespace foreshard::suggestion_list_test {
namespace {

// Asks against a bubble of the warm-up of eight micro-batches on four stages, one second a step, with ideas answered by the program.
struct Asked {
  explicit Asked(const QString& script) : program(script), list(program.path()) {}
  bool ask() {
    list.ask(BubbleCause::WarmUp, {},
             {{"pp", "4"}, {"batch.micro", "2"}, {"batch.global", "16"}, {"dp", "1"}, {"virtual_stages", "1"}}, 1);
    return QTest::qWaitFor([this] { return !list.busy(); }, 60'000);
  }
  FakeProgram program;
  SuggestionList list;
};

}  // namespace

TEST(SuggestionList, IsHiddenUntilAsked) {
  Asked asked("exit 1");
  EXPECT_TRUE(asked.list.isHidden());
  ASSERT_TRUE(asked.ask());
  EXPECT_FALSE(asked.list.isHidden());
  EXPECT_TRUE(asked.list.findChildren<QPushButton*>().isEmpty());  // nothing helped
  asked.list.clear();
  EXPECT_TRUE(asked.list.isHidden());
}

// Every idea takes half a second instead of one: each is a button, and says so.
TEST(SuggestionList, AClickChooses) {
  Asked asked(R"(echo '{"feasible": true, "infeasible_reason": "", "would_help": [], "iteration_time_s": 0.5}')");
  QSignalSpy settled(&asked.list, &SuggestionList::settled);
  std::vector<Choices> chosen;
  QObject::connect(&asked.list, &SuggestionList::chosen, [&](const Choices& choices) { chosen.push_back(choices); });
  ASSERT_TRUE(asked.ask());
  EXPECT_GE(settled.count(), 1);
  const auto buttons = asked.list.findChildren<QPushButton*>();
  ASSERT_FALSE(buttons.isEmpty());
  EXPECT_TRUE(buttons[0]->text().contains("50.0 %")) << buttons[0]->text().toStdString();
  buttons[0]->click();
  ASSERT_EQ(chosen.size(), 1U);
  EXPECT_NE(chosen[0], Choices{});
}

}  // namespace foreshard::suggestion_list_test
