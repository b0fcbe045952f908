// Simulations by a program that answers, refuses or fails.
#include "gui/run/simulation.h"

#include <gtest/gtest.h>

#include <QSignalSpy>
#include <QTest>

#include "core/base/error.h"
#include "tests/gui/fake_program.h"

namespace foreshard::simulation_test {
namespace {

struct Answers {
  explicit Answers(Simulation& simulation) {
    QObject::connect(&simulation, &Simulation::done, [this](const Simulated& simulated) { done.push_back(simulated); });
    QObject::connect(&simulation, &Simulation::failed, [this](const QString& message) { failed.push_back(message); });
  }
  bool wait() {
    return QTest::qWaitFor([this] { return !done.empty() || !failed.empty(); }, 20'000);
  }
  std::vector<Simulated> done = {};
  std::vector<QString> failed = {};
};

}  // namespace

TEST(Simulation, AnAnswerHasReasonChangesAndOptions) {
  Simulated simulated;
  read_answer(simulated, R"({"feasible": false, "infeasible_reason": "too large", "would_help": ["--tp 2", "--zero 1"],
                             "strategy": {"tp": 4}})");
  EXPECT_EQ(simulated.reason, "too large");
  EXPECT_EQ(simulated.would_help, (QStringList{"--tp 2", "--zero 1"}));
  EXPECT_EQ(simulated.resolved.at("tp"), "4");
  Simulated fits;
  read_answer(fits, R"({"feasible": true})");
  EXPECT_EQ(fits.reason, "");
  EXPECT_TRUE(fits.resolved.empty());
  EXPECT_THROW(read_answer(fits, "nonsense"), Error);
}

// A program that writes no result: the answer has no document, but the reason.
TEST(Simulation, AJobThatCannotRunHasNoDocument) {
  const FakeProgram program(R"(echo '{"feasible": false, "infeasible_reason": "no", "would_help": []}'; exit 2)");
  Simulation simulation(program.path());
  Answers answers(simulation);
  QSignalSpy started(&simulation, &Simulation::started);
  simulation.request({}, Granularity::Stage);
  EXPECT_TRUE(simulation.busy());
  ASSERT_TRUE(answers.wait());
  EXPECT_EQ(started.count(), 1);
  ASSERT_EQ(answers.done.size(), 1U);
  EXPECT_EQ(answers.done[0].reason, "no");
  EXPECT_FALSE(answers.done[0].document);
  EXPECT_FALSE(simulation.busy());
}

TEST(Simulation, AnAnswerThatCannotBeReadFails) {
  const FakeProgram program("echo nonsense");
  Simulation simulation(program.path());
  Answers answers(simulation);
  simulation.request({}, Granularity::Stage);
  ASSERT_TRUE(answers.wait());
  ASSERT_EQ(answers.failed.size(), 1U);
  EXPECT_TRUE(answers.failed[0].startsWith("answer of foreshard")) << answers.failed[0].toStdString();
}

}  // namespace foreshard::simulation_test
