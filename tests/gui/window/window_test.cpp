// The whole window against the real program and against broken ones: nothing a child, a file or a person does may end it or
// lose the workspace.
#include <gtest/gtest.h>

#include <QApplication>
#include <QDir>
#include <QDropEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMimeData>
#include <QSignalSpy>
#include <QStatusBar>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>

#include "core/base/error.h"
#include "core/json/json.h"
#include "core/model/model.h"
#include "gui/document/bookmark_list.h"
#include "gui/document/facts.h"
#include "gui/document/words.h"
#include "gui/search/search_panel.h"
#include "gui/strategy/option_field.h"
#include "gui/strategy/strategy_panel.h"
#include "gui/timeline/timeline_view.h"
#include "gui/window/main_window.h"
#include "gui/window/palette_box.h"
#include "gui/window/screenshot.h"
#include "tests/gui/fake_program.h"

namespace foreshard::window_test {

namespace {

class WindowTest : public testing::Test {
 protected:
  WindowOptions options(const QString& program = FORESHARD_PROGRAM) const {
    return {
        .program = program, .settings = folder.filePath("s.ini"), .session = folder.filePath("session.json"), .tour = false};
  }
  static bool settled(MainWindow& window) {
    QTest::qWait(250);  // a change is simulated after a moment without another
    return QTest::qWaitFor([&] { return !window.busy(); }, 60'000);
  }
  static Choices small() {
    return {.model = "gpt2-124m",
            .cluster = "dgx-a100",
            .strategy = {{"pp", "2"}, {"dp", "4"}, {"global_batch", "16"}, {"seq", "128"}}};
  }
  void write(const QString& name, const std::string& text) { write_file(folder.filePath(name).toStdString(), text); }
  QTemporaryDir folder;
};

}  // namespace

TEST_F(WindowTest, AKnobTurnsThePictureAndUndoTurnsItBack) {
  MainWindow window(options());
  window.set_choices(small(), "test");
  ASSERT_TRUE(settled(window));
  ASSERT_TRUE(window.document()) << window.message().toStdString();
  const Seconds before = window.document()->summary.iteration_time;
  ASSERT_NE(window.strategy_panel()->field("zero"), nullptr);  // the panel came from the program
  window.strategy_panel()->field("micro_batch")->findChild<QLineEdit*>()->setText("2");
  ASSERT_TRUE(settled(window));
  const Seconds after = window.document()->summary.iteration_time;
  EXPECT_NE(before.value, after.value);
  window.undo_stack().undo();
  EXPECT_FALSE(window.strategy_panel()->choices().strategy.contains("micro_batch"));
  ASSERT_TRUE(settled(window));
  EXPECT_EQ(window.document()->summary.iteration_time.value, before.value);
  window.undo_stack().redo();
  ASSERT_TRUE(settled(window));
  EXPECT_EQ(window.document()->summary.iteration_time.value, after.value);
}

TEST_F(WindowTest, WhatCannotBeIsSaidAndTheOldPictureStays) {
  MainWindow window(options());
  window.set_choices(small(), "test");
  ASSERT_TRUE(settled(window));
  const auto shown = window.document();
  Choices odd = small();
  odd.strategy["pp"] = "7";
  window.set_choices(odd, "test");
  ASSERT_TRUE(settled(window));
  EXPECT_EQ(window.document(), shown);
  odd.model = "no-such-model";
  window.set_choices(odd, "test");
  ASSERT_TRUE(settled(window));
  EXPECT_TRUE(window.message().contains("no-such-model")) << window.message().toStdString();
  EXPECT_EQ(window.document(), shown);
}

// A message lies over the lower edge of the views: nothing that is looked at moves when it comes, or when it goes.
TEST_F(WindowTest, AMessageMovesNothing) {
  write("bad.json", "{\"nodes\": ");
  MainWindow window(options());
  window.resize(1500, 900);
  window.set_choices(small(), "test");
  window.show();
  ASSERT_TRUE(settled(window));
  const auto places = [&] {
    return std::pair(QRect(window.timeline()->mapTo(&window, QPoint()), window.timeline()->size()),
                     QRect(window.view("memory")->mapTo(&window, QPoint()), window.view("memory")->size()));
  };
  const auto before = places();
  window.open_file(folder.filePath("bad.json"));
  QTest::qWait(50);
  ASSERT_FALSE(window.message().isEmpty());
  EXPECT_EQ(places(), before);
  const auto* banner = window.centralWidget()->findChild<QFrame*>("banner");
  EXPECT_TRUE(banner->isVisible());
  EXPECT_TRUE(window.centralWidget()->rect().contains(banner->geometry()));
  EXPECT_EQ(banner->geometry().bottom(), window.centralWidget()->rect().bottom());
  window.resize(1300, 800);
  QTest::qWait(50);
  EXPECT_TRUE(window.centralWidget()->rect().contains(banner->geometry()));
}

// Of a workspace that cannot be read a picture of the search says why, not that the search has no model.
TEST_F(WindowTest, APictureOfTheSearchSaysWhatIsWrongWithTheFile) {
  write("w.workspace.json", R"({"format": "foreshard workspace", "version": 1, "choices": 3})");
  MainWindow window(options());
  Screenshot screenshot(window, {.file = folder.filePath("s.png"), .view = "search"});
  QString told;
  bool done = false;
  QObject::connect(&screenshot, &Screenshot::done, [&](const QString& text) { told = text, done = true; });
  window.show();
  window.start({folder.filePath("w.workspace.json")});
  ASSERT_TRUE(QTest::qWaitFor([&] { return done; }, 20'000));
  EXPECT_TRUE(told.contains("w.workspace.json")) << told.toStdString();
}

TEST_F(WindowTest, ABrokenProgramIsAMessage) {
  for (const char* body : {"kill -SEGV $$", "head -c 100000 /dev/urandom; exit 0", "echo '{}'; exit 0", "exit 3", "exit 99"}) {
    const FakeProgram program(body);
    MainWindow window(options(program.path()));
    window.set_choices(small(), "test");
    ASSERT_TRUE(settled(window)) << body;
    EXPECT_FALSE(window.message().isEmpty()) << body;
    EXPECT_EQ(window.workspace().choices, small()) << body;
  }
  MainWindow none(options(""));
  none.set_choices(small(), "test");
  ASSERT_TRUE(settled(none));
  EXPECT_TRUE(none.message().contains("PATH"));
}

TEST_F(WindowTest, AModelAloneIsSimulatedOnTheClusterOfTheWorkedExample) {
  write("config.json", read_file(model_file("gpt2-124m")));
  MainWindow window(options());
  window.start({folder.filePath("config.json")});
  ASSERT_TRUE(settled(window));
  EXPECT_EQ(window.workspace().choices.cluster, worked_example().cluster);
  EXPECT_TRUE(window.document()) << window.message().toStdString();
}

TEST_F(WindowTest, APictureOfNothingIsAFailure) {
  write("bad.json", "{ \"model_type\": \"gpt2\", ");
  write("notes.txt", "a list of things to do");
  for (const char* name : {"not-there.json", "bad.json", "notes.txt"}) {
    MainWindow window(options());
    window.start({folder.filePath(name)});
    Screenshot shot(window, {.file = folder.filePath("a.png")});
    QSignalSpy done(&shot, &Screenshot::done);
    window.show();
    ASSERT_TRUE(QTest::qWaitFor([&] { return !done.empty(); }, 30'000)) << name;
    EXPECT_TRUE(done[0][0].toString().contains(name)) << done[0][0].toString().toStdString();
    EXPECT_FALSE(QFile::exists(folder.filePath("a.png"))) << name;
  }
}

TEST_F(WindowTest, AShortageSaysWhereHowMuchAndWhatOf) {
  MainWindow window(options());
  window.set_choices({.model = "llama-2-7b", .cluster = "dgx-a100", .nodes = 1, .strategy = {{"dp", "8"}}}, "test");
  ASSERT_TRUE(settled(window));
  ASSERT_TRUE(window.document());
  ASSERT_FALSE(window.document()->summary.feasible);
  auto* refusal = window.strategy_panel()->findChild<QLabel*>("refusal");
  EXPECT_TRUE(refusal->text().contains("does not fit")) << refusal->text().toStdString();
  EXPECT_TRUE(refusal->text().contains("too much). Most of it: optimizer")) << refusal->text().toStdString();
  EXPECT_TRUE(refusal->text().remove("&#8203;").contains(facts_of(*window.document(), {}, nullptr).explained))
      << "as the inspector says it";
  EXPECT_TRUE(refusal->text().contains("To make it fit:"));
  EXPECT_TRUE(refusal->toolTip().contains("GiB"));  // every category
}

// Nobody knows what Auto comes to in a strategy that cannot be: "Auto · 0" was no answer.
TEST_F(WindowTest, ARefusedStrategyHasNoResolvedValues) {
  MainWindow window(options());
  window.set_choices({.model = "llama-2-7b", .cluster = "dgx-a100", .nodes = 1, .strategy = {{"tp", "8"}, {"pp", "35"}}},
                     "test");
  ASSERT_TRUE(settled(window));
  ASSERT_FALSE(window.document());
  for (const char* path : {"dp", "seq", "zero_group"}) {
    const QString shown = window.strategy_panel()->field(path)->findChild<QLineEdit*>()->placeholderText();
    EXPECT_FALSE(shown.endsWith(" 0")) << path << ": " << shown.toStdString();
  }
}

TEST_F(WindowTest, ThePaletteChoosesClusters) {
  MainWindow window(options());
  window.set_choices(small(), "test");
  window.show();
  ASSERT_TRUE(settled(window));
  window.keys().action("edit.palette")->trigger();
  QTest::keyClicks(window.palette_box()->line(), "Cluster dgx-h100");
  QTest::keyClick(window.palette_box()->line(), Qt::Key_Return);
  EXPECT_EQ(window.strategy_panel()->choices().cluster, "dgx-h100");
}

TEST_F(WindowTest, ASearchCountsWithThousandsApart) {
  const FakeProgram program(
      "[ \"$1\" = search ] && { echo '{\"enumerated\": 9583476, \"refined\": 1234, \"results\": []}'; exit; }; "
      "exec " FORESHARD_PROGRAM " \"$@\"");
  WindowOptions with = options();
  with.program = program.path();
  MainWindow window(with);
  window.set_choices(small(), "test");
  ASSERT_TRUE(settled(window));
  window.keys().action("plan.search")->trigger();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window.search_panel()->busy(); }, 20'000));
  bool said = false;
  for (QLabel* label : window.search_panel()->findChildren<QLabel*>())
    said |= label->text().contains(count_words(9583476)) && label->text().contains(count_words(1234));
  EXPECT_TRUE(said);
}

TEST_F(WindowTest, TheTitleNamesWhatIsOpenAndWhetherItIsSaved) {
  MainWindow window(options());
  window.set_choices(small(), "test");
  ASSERT_TRUE(settled(window));
  EXPECT_TRUE(window.windowTitle().contains("gpt2-124m on dgx-a100")) << window.windowTitle().toStdString();
  const QString file = folder.filePath("mine.workspace.json");
  save_workspace(window.workspace(), file.toStdString());
  window.open_file(file);
  ASSERT_TRUE(settled(window));
  EXPECT_TRUE(window.windowTitle().contains("mine.workspace.json"));
  EXPECT_FALSE(window.isWindowModified());
  window.strategy_panel()->field("micro_batch")->findChild<QLineEdit*>()->setText("2");
  EXPECT_TRUE(window.isWindowModified());
  window.keys().action("file.save")->trigger();
  EXPECT_FALSE(window.isWindowModified());
  EXPECT_TRUE(window.statusBar()->currentMessage().contains("mine.workspace.json"));
  ASSERT_TRUE(settled(window));
}

TEST_F(WindowTest, AFileThatCannotBeSavedSaysWhy) {
  MainWindow window(options());
  window.set_choices(small(), "test");
  ASSERT_TRUE(settled(window));
  const QString file = folder.filePath("gone/mine.workspace.json");
  QDir(folder.path()).mkdir("gone");
  save_workspace(window.workspace(), file.toStdString());
  window.open_file(file);
  ASSERT_TRUE(settled(window));
  QDir(folder.filePath("gone")).removeRecursively();
  window.keys().action("file.save")->trigger();
  EXPECT_TRUE(window.message().startsWith("Cannot save ")) << window.message().toStdString();
  EXPECT_FALSE(window.message().contains("expected")) << window.message().toStdString();
}

TEST_F(WindowTest, ForeignAndCorruptFilesAreMessages) {
  MainWindow window(options());
  ASSERT_TRUE(settled(window));
  write("empty", "");
  write("picture.png", "\x89PNG\r\n");
  write("half.result", R"({"format": "foreshard result", "version": 1, "trace")");
  write("wrong.result", R"({"format": "foreshard result", "version": 77})");
  write("w.workspace.json", R"({"format": "foreshard workspace", "version": 1, "choices": 3})");
  write("p.plan.json", R"({"format": "foreshard plan", "version": 1, "roles": "none"})");
  for (const char* name :
       {"empty", "picture.png", "half.result", "wrong.result", "w.workspace.json", "p.plan.json", "not-there"}) {
    window.open_file(folder.filePath(name));
    ASSERT_TRUE(settled(window)) << name;
    EXPECT_TRUE(window.message().contains(name)) << name << ": " << window.message().toStdString();
  }
}

TEST_F(WindowTest, AResultIsShownWatchedAndLoadedAgain) {
  MainWindow window(options());
  window.set_choices(small(), "test");
  ASSERT_TRUE(settled(window));
  const std::string path = folder.filePath("r.result").toStdString();
  save_result(window.document()->result, path);
  window.open_file(QString::fromStdString(path));
  ASSERT_TRUE(settled(window));
  EXPECT_EQ(window.document()->path, path);
  write_file(path, "{\"format\": \"foreshard result\"");  // somebody writes half of it
  ASSERT_TRUE(QTest::qWaitFor([&] { return window.message().contains("r.result"); }, 20'000));
  const auto shown = window.document();
  window.open_file(QString::fromStdString(path));
  ASSERT_TRUE(settled(window));
  EXPECT_EQ(window.document(), shown);  // what was there stays
}

// The estimate and the status bar kept the time of the job before beside the picture of the file.
TEST_F(WindowTest, WhatIsSaidBelongsToTheFileThatIsOpen) {
  MainWindow window(options());
  window.set_choices(small(), "test");
  ASSERT_TRUE(settled(window));
  const std::string path = folder.filePath("r.result").toStdString();
  save_result(window.document()->result, path);
  const QString time = time_text(window.document()->summary.iteration_time.value);
  Choices other = small();
  other.strategy["global_batch"] = "64";
  window.set_choices(other, "test");
  ASSERT_TRUE(settled(window));
  window.open_file(QString::fromStdString(path));
  ASSERT_TRUE(settled(window));
  const auto labels = window.findChild<StrategyPanel*>()->findChildren<QLabel*>();
  EXPECT_EQ(std::ranges::count(labels, time + " per step in the file", &QLabel::text), 1);
  EXPECT_TRUE(window.statusBar()->currentMessage().endsWith(time + " per step"))
      << window.statusBar()->currentMessage().toStdString();
}

TEST_F(WindowTest, FilesCanBeDropped) {
  MainWindow window(options());
  window.set_choices(small(), "test");
  ASSERT_TRUE(settled(window));
  Strategy strategy;
  strategy.tp = 4, strategy.batch.global = 8;
  write("a.strategy.json", to_json(strategy));
  QMimeData data;
  data.setUrls({QUrl::fromLocalFile(folder.filePath("a.strategy.json"))});
  QDragEnterEvent enter(QPoint(50, 50), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&window, &enter);
  EXPECT_TRUE(enter.isAccepted());
  QDropEvent drop(QPointF(50, 50), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&window, &drop);
  EXPECT_EQ(window.workspace().choices.strategy, (std::map<std::string, std::string>{{"tp", "4"}, {"global_batch", "8"}}));
  EXPECT_EQ(window.workspace().choices.model, "gpt2-124m");
}

TEST_F(WindowTest, ASessionIsRestoredAndABrokenOneIsNot) {
  Workspace before;
  {
    MainWindow window(options());
    window.set_choices(small(), "test");
    ASSERT_TRUE(settled(window));
    window.bookmark_list()->add({.note = "here", .range = {{1000}, {2000}}, .digit = 4});
    window.view("topology");
    before = window.workspace();
    window.close();
  }
  {
    MainWindow window(options());
    window.start({});
    ASSERT_TRUE(settled(window));
    EXPECT_EQ(window.workspace().choices, before.choices);
    EXPECT_EQ(window.workspace().bookmarks, before.bookmarks);
    EXPECT_EQ(window.workspace().page, "topology");
    EXPECT_TRUE(window.document());
  }
  write("session.json", "{ half");
  MainWindow window(options());
  window.start({});
  EXPECT_EQ(window.workspace().choices, worked_example());
}

TEST_F(WindowTest, ClosingDuringASearchEndsIt) {
  const FakeProgram program(
      "[ \"$1\" = search ] && { echo '{\"progress\": 0.1}' >&2; exec sleep 1000; }; exec " FORESHARD_PROGRAM " \"$@\"");
  auto window = std::make_unique<MainWindow>(options(program.path()));
  window->set_choices(small(), "test");
  ASSERT_TRUE(settled(*window));
  window->search_panel()->start();
  EXPECT_TRUE(window->search_panel()->busy());
  QTest::qWait(100);
  window->close();
  EXPECT_FALSE(window->search_panel()->busy());
  window.reset();
  EXPECT_EQ(load_workspace(folder.filePath("session.json").toStdString()).choices, small());
}

TEST_F(WindowTest, FoundStrategiesLoadAndCompare) {
  MainWindow window(options());
  window.set_choices(small(), "test");
  ASSERT_TRUE(settled(window));
  window.search_panel()->set_refined(4);
  QSignalSpy all_done(&window, &MainWindow::settled);
  window.search_panel()->start();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !all_done.empty(); }, 60'000));
  const auto& rows = window.search_panel()->rows().rows();
  ASSERT_GE(rows.size(), 2u) << window.message().toStdString();
  Q_EMIT window.search_panel()->load_asked(choices_with(small(), rows[0].strategy));
  ASSERT_TRUE(settled(window));
  EXPECT_EQ(window.document()->summary.gpus, 8);
  EXPECT_TRUE(window.document()->trace().spans.size() > 0);
  Q_EMIT window.search_panel()->compare_asked(small());
  ASSERT_TRUE(settled(window));
  EXPECT_TRUE(window.compared());
}

TEST_F(WindowTest, WhatIsFoundIsPicked) {
  MainWindow window(options());
  window.set_choices(small(), "test");
  ASSERT_TRUE(settled(window));
  window.show();
  window.keys().action("edit.find")->trigger();
  QTest::keyClicks(window.palette_box()->line(), "warm-up");
  QTest::keyClick(window.palette_box()->line(), Qt::Key_Return);
  EXPECT_EQ(window.selection().picked().kind, PickedKind::Bubble);
  EXPECT_FALSE(window.palette_box()->isVisible());
  ASSERT_TRUE(settled(window));  // its suggestions
}

TEST_F(WindowTest, NothingWithoutAName) {
  MainWindow window(options());
  ASSERT_TRUE(settled(window));
  for (QWidget* widget : window.findChildren<QWidget*>()) {
    const QWidget* parent = widget->parentWidget();
    if (parent != nullptr && parent->isHidden() && parent->inherits("QFrame")) continue;  // named when it opens
    if (!(widget->focusPolicy() & Qt::TabFocus) || widget->inherits("QTabBar") || widget->inherits("QScrollArea") ||
        widget->inherits("QLabel"))
      continue;
    if (parent != nullptr && (parent->inherits("QAbstractSpinBox") || parent->inherits("QComboBox"))) continue;
    const bool text = !widget->property("text").toString().isEmpty();
    EXPECT_TRUE(text || !widget->accessibleName().isEmpty())
        << widget->metaObject()->className() << " " << widget->objectName().toStdString() << " in "
        << parent->metaObject()->className();
  }
}

TEST_F(WindowTest, EveryExportWritesItsFile) {
  MainWindow window(options());
  window.set_choices(small(), "test");
  ASSERT_TRUE(settled(window));
  const std::pair<ExportKind, const char*> kinds[] = {{ExportKind::Png, "\x89PNG"},     {ExportKind::Svg, "<svg"},
                                                      {ExportKind::Pdf, "%PDF"},        {ExportKind::Html, "<!doctype html>"},
                                                      {ExportKind::SpansCsv, "class,"}, {ExportKind::StagesCsv, "role,bubble,"},
                                                      {ExportKind::ChromeTrace, "{"}};
  for (const auto& [kind, begins] : kinds) {
    const QString file = folder.filePath(QString("out%1").arg(static_cast<int>(kind)));
    window.export_to(kind, file);
    const std::string text = read_file(file.toStdString());
    EXPECT_NE(text.substr(0, 200).find(begins), std::string::npos) << begins;
    EXPECT_GT(text.size(), 500u) << begins;
  }
  const std::string spans =
      read_file(folder.filePath(QString("out%1").arg(static_cast<int>(ExportKind::SpansCsv))).toStdString());
  EXPECT_EQ(std::count(spans.begin(), spans.end(), '\n'),
            static_cast<std::ptrdiff_t>(window.document()->trace().spans.size() + 1));
  EXPECT_THROW(window.export_to(ExportKind::Svg, "/nowhere/at/all.svg"), Error);
}

}  // namespace foreshard::window_test
