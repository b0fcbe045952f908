#include "gui/run/child.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <QElapsedTimer>
#include <QSignalSpy>
#include <QTest>
#include <optional>

#include "tests/gui/fake_program.h"

namespace foreshard::child_test {

namespace {

struct Ended {
  explicit Ended(Child& child) {
    QObject::connect(&child, &Child::finished, [this](const ChildOutcome& outcome) { got.push_back(outcome); });
  }
  bool wait() {
    return QTest::qWaitFor([this] { return !got.empty(); }, 20'000);
  }
  std::vector<ChildOutcome> got = {};
};

}  // namespace

TEST(Child, TellsProgressLinesAndTheAnswer) {
  const FakeProgram program(
      R"(echo '{"progress": 0.25}' >&2; echo '{"candidate": 1}' >&2; printf '{"progress": 1}' >&2; echo "$1 $2")");
  Child child(program.path());
  QSignalSpy progress(&child, &Child::progress), told(&child, &Child::told);
  Ended ended(child);
  child.start({"one", "two words"});
  EXPECT_TRUE(child.running());
  ASSERT_TRUE(ended.wait());
  EXPECT_EQ(ended.got[0].end, ChildEnd::Done);
  EXPECT_EQ(ended.got[0].out, "one two words\n");
  ASSERT_EQ(progress.count(), 2);  // the last line has no end
  EXPECT_EQ(progress[0][0].toDouble(), 0.25);
  ASSERT_EQ(told.count(), 1);
  EXPECT_EQ(told[0][0].toByteArray(), R"({"candidate": 1})");
  EXPECT_FALSE(child.running());
}

TEST(Child, AJobThatDoesNotFitIsAnAnswer) {
  const FakeProgram program("echo '{}'; exit 2");
  Child child(program.path());
  Ended ended(child);
  child.start({});
  ASSERT_TRUE(ended.wait());
  EXPECT_EQ(ended.got[0].end, ChildEnd::Done);
  EXPECT_EQ(ended.got[0].exit_code, 2);
}

TEST(Child, WrongInputIsToldInTheWordsOfTheChild) {
  const FakeProgram program("echo 'foreshard: command line: --tp: found \"x\", expected a whole number' >&2; exit 1");
  Child child(program.path());
  Ended ended(child);
  child.start({});
  ASSERT_TRUE(ended.wait());
  EXPECT_EQ(ended.got[0].end, ChildEnd::WrongInput);
  EXPECT_EQ(ended.got[0].message, "command line: --tp: found \"x\", expected a whole number");
}

TEST(Child, ACrashIsAMessage) {
  const FakeProgram program("echo 'half a sen' >&2; kill -SEGV $$");
  Child child(program.path());
  Ended ended(child);
  child.start({});
  ASSERT_TRUE(ended.wait());
  EXPECT_EQ(ended.got[0].end, ChildEnd::Crashed);
  EXPECT_TRUE(ended.got[0].message.contains("half a sen")) << ended.got[0].message.toStdString();
}

TEST(Child, SilenceIsEndedAfterThePatience) {
  const FakeProgram program("exec sleep 1000");
  Child child(program.path());
  Ended ended(child);
  child.start({}, std::chrono::milliseconds(50));
  ASSERT_TRUE(ended.wait());
  EXPECT_EQ(ended.got[0].end, ChildEnd::Silent);
  EXPECT_FALSE(ended.got[0].message.isEmpty());
}

TEST(Child, GarbageIsNeitherALineNorACrash) {
  const FakeProgram program(
      "head -c 3000000 /dev/zero >&2; head -c 1000 /dev/urandom >&2; echo >&2; echo '{\"progress\": \"much\"' >&2; "
      "echo '{\"progress\": 7}' >&2; echo 'the end' >&2; exit 1");
  Child child(program.path());
  QSignalSpy progress(&child, &Child::progress), told(&child, &Child::told);
  Ended ended(child);
  child.start({});
  ASSERT_TRUE(ended.wait());
  EXPECT_EQ(ended.got[0].end, ChildEnd::WrongInput);
  EXPECT_LE(ended.got[0].message.size(), 1000);
  EXPECT_TRUE(ended.got[0].message.endsWith("the end"));
  EXPECT_EQ(told.count(), 0);
  ASSERT_EQ(progress.count(), 1);
  EXPECT_EQ(progress[0][0].toDouble(), 1.0);  // never beyond the end
}

TEST(Child, CancelEndsTheProcess) {
  const FakeProgram program("echo $$ > \"$1\"; echo '{\"progress\": 0}' >&2; exec sleep 1000");
  Child child(program.path());
  QSignalSpy progress(&child, &Child::progress);
  Ended ended(child);
  child.start({program.beside("pid")});
  ASSERT_TRUE(QTest::qWaitFor([&] { return progress.count() > 0; }, 20'000));
  QFile file(program.beside("pid"));
  ASSERT_TRUE(file.open(QIODevice::ReadOnly));
  const int pid = file.readAll().trimmed().toInt();
  ASSERT_GT(pid, 1);
  child.cancel();
  ASSERT_EQ(ended.got.size(), 1u);  // at once
  EXPECT_EQ(ended.got[0].end, ChildEnd::Cancelled);
  EXPECT_TRUE(QTest::qWaitFor([&] { return kill(pid, 0) != 0; }, 20'000));
}

TEST(Child, WhatIsNotThereIsNotStarted) {
  Child child("/nowhere/foreshard");
  Ended ended(child);
  child.start({});
  ASSERT_TRUE(ended.wait());
  EXPECT_EQ(ended.got[0].end, ChildEnd::NotStarted);
  EXPECT_TRUE(ended.got[0].message.contains("/nowhere/foreshard"));
}

TEST(Child, OnlyTheNewestRunAnswers) {
  const FakeProgram program("[ \"$1\" = slow ] && exec sleep 1000; echo \"$1\"");
  Child child(program.path());
  Ended ended(child);
  child.start({"slow"});
  child.start({"quick"});
  ASSERT_TRUE(ended.wait());
  QTest::qWait(20);
  ASSERT_EQ(ended.got.size(), 1u);
  EXPECT_EQ(ended.got[0].out, "quick\n");
}

TEST(Child, TheProgramBesideGoesBeforeThePath) {
  const FakeProgram program("true");
  const QString folder = program.path().chopped(QString("/foreshard").size());
  EXPECT_EQ(find_program("foreshard", folder), program.path());
  EXPECT_TRUE(find_program("sh", folder).endsWith("/sh"));
  EXPECT_TRUE(find_program("no-such-program-anywhere", folder).isEmpty());
}

}  // namespace foreshard::child_test
