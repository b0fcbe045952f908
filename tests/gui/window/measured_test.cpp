// Measurements in the window: what device they are of, and what they are laid beside.
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QTableWidget>

#include "core/json/json.h"
#include "core/json/json_edit.h"
#include "gui/compare/compare_view.h"
#include "gui/document/delta.h"
#include "gui/document/twin.h"
#include "gui/inspector/kpi_strip.h"
#include "gui/run/run_panel.h"
#include "gui/timeline/timeline_view.h"
#include "report/words/devices.h"
#include "tests/gui/documents.h"
#include "tests/gui/open_window.h"

namespace foreshard::measured_test {
namespace {

class Measured : public OpenWindow {
 protected:
  // What is shown, as if it had been run on `device` and taken four times as long.
  QString measured_file(const MeasuredOn& device) const {
    Result run = window->document()->result;
    run.trace.origin = Origin::Measured;
    run.measured_on = device;
    for (Span& span : run.trace.spans) span.ready.value *= 4, span.begin.value *= 4, span.end.value *= 4;
    run.trace.makespan.value *= 4, run.makespan_s *= 4;
    const QString file = folder.filePath("m.result");
    save_result(run, file.toStdString());
    return file;
  }
  QString titles() const {
    QString all;
    for (QLabel* label : window->compare_view()->findChildren<QLabel*>()) all += label->text() + "\n";
    return all;
  }
  // "[row] change" of the table of differences.
  std::map<QString, QString> changes() const {
    window->view("compare");
    window->compare_view()->set_mode(CompareMode::Delta);
    auto* table = window->compare_view()->findChild<QTableWidget*>();
    std::map<QString, QString> all;
    for (int row = 0; row < table->rowCount(); ++row) all[table->item(row, 0)->text()] = table->item(row, 3)->text();
    return all;
  }
};

TEST_F(Measured, AFileOfAProcessorIsNoErrorOfAPredictionForGpus) {
  MainWindow& w = open();
  w.open_file(measured_file({"host", "a processor, 2 cores"}));
  ASSERT_TRUE(settled());
  ASSERT_TRUE(w.timeline()->twin()) << w.message().toStdString();
  for (const auto& cells : w.timeline()->twin()->cells) EXPECT_TRUE(cells.empty());
  EXPECT_TRUE(titles().contains("measured on a processor, 2 cores")) << titles().toStdString();
  EXPECT_TRUE(titles().contains("not comparable"));
  EXPECT_FALSE(titles().contains(" %")) << titles().toStdString();
  const auto rows = changes();
  EXPECT_EQ(rows.at("iteration time"), QString(QChar(0x2013)));
  EXPECT_EQ(rows.at("model FLOPs utilisation"), QString(QChar(0x2013)));
  EXPECT_EQ(rows.at("peak incl. framework"), "=");
  w.compare_view()->set_mode(CompareMode::Overlaid);  // neither there
  for (const TimelineView* timeline : w.compare_view()->findChildren<TimelineView*>()) {
    if (timeline->twin() == nullptr) continue;
    for (const auto& cells : timeline->twin()->cells) EXPECT_TRUE(cells.empty());
  }
}

TEST_F(Measured, ALongNameOfADeviceDoesNotMakeTheWindowWider) {
  MainWindow& w = open();
  w.open_file(measured_file({"host", QString("A processor of many words, ").repeated(12).toStdString()}));
  ASSERT_TRUE(settled());
  w.view("compare");
  QTest::qWait(50);
  EXPECT_EQ(w.width(), 1600);
  EXPECT_LT(w.minimumSizeHint().width(), 1300);
}

TEST_F(Measured, AFileOfTheSameKindOfGpuIs) {
  MainWindow& w = open();
  w.open_file(measured_file({"NVIDIA A100-SXM4-80GB", "8 x NVIDIA A100-SXM4-80GB"}));
  ASSERT_TRUE(settled());
  ASSERT_TRUE(w.timeline()->twin());
  EXPECT_NEAR(w.timeline()->twin()->bias, 3, 1e-6);
  EXPECT_TRUE(titles().contains("+300.0 %")) << titles().toStdString();
}

TEST_F(Measured, AnOldFileIsOfAnUnknownDevice) {
  MainWindow& w = open();
  w.open_file(measured_file({}));
  ASSERT_TRUE(settled());
  EXPECT_TRUE(titles().contains("measured on an unknown device")) << titles().toStdString();
  EXPECT_EQ(changes().at("iteration time"), QString(QChar(0x2013)));
}

TEST_F(Measured, ABaselineOfAnotherDeviceIsNamedAndNoMeasure) {
  const auto predicted = simulated_document();
  auto run = std::make_shared<Document>(*predicted);
  run->result.trace.origin = Origin::Measured;
  run->result.measured_on = {"host", "a processor"};
  run->summary.iteration_time.value *= 4;
  const std::vector<Kpi> kpis = kpis_of(*run, predicted.get());
  EXPECT_TRUE(kpis[0].aside.contains("another device (a100-80)")) << kpis[0].aside.toStdString();
  for (const Kpi& kpi : kpis) EXPECT_FALSE(kpi.aside.contains("+300")) << kpi.aside.toStdString();
}

TEST_F(Measured, AnotherModelHasNoDifferences) {
  MainWindow& w = open();
  w.keys().action("plan.baseline")->trigger();
  Choices other = with_model(small(), "bert-large");
  w.set_choices(other, "test");
  ASSERT_TRUE(settled());
  w.view("compare");
  EXPECT_TRUE(titles().contains("another model")) << titles().toStdString();
  EXPECT_FALSE(titles().contains(" %"));
  for (const auto& [row, change] : changes()) EXPECT_EQ(change, QString(QChar(0x2013))) << row.toStdString();
}

// Alone it is what is shown; the panel has the plan that was run and not what was chosen before.
TEST_F(Measured, AFileOfAnotherPlanTakesTheWindow) {
  MainWindow& w = open();
  const QString file = measured_file({"host", "a processor"});
  Choices other = small();
  other.strategy["micro_batch"] = "2";
  w.set_choices(other, "test");
  ASSERT_TRUE(settled());
  w.open_file(file);
  ASSERT_TRUE(settled());
  EXPECT_EQ(w.document()->trace().origin, Origin::Measured);
  EXPECT_EQ(w.workspace().result, file.toStdString());
  EXPECT_EQ(w.workspace().choices.strategy.count("micro_batch"), 0U);
  EXPECT_TRUE(w.windowTitle().startsWith("m.result")) << w.windowTitle().toStdString();
}

// A simulation of what is shown in more detail keeps the measurement beside it.
TEST_F(Measured, MoreDetailKeepsTheMeasurement) {
  MainWindow& w = open();
  w.open_file(measured_file({"host", "a processor"}));
  ASSERT_TRUE(settled());
  ASSERT_TRUE(w.timeline()->twin());
  w.keys().action("plan.detail_0")->trigger();
  ASSERT_TRUE(settled());
  EXPECT_TRUE(w.timeline()->twin());
  const Workspace kept = w.workspace();
  EXPECT_TRUE(QString::fromStdString(kept.measured).endsWith("m.result"));
  w.show_workspace(kept);
  ASSERT_TRUE(settled());
  ASSERT_TRUE(QTest::qWaitFor([&] { return w.timeline()->twin() != nullptr; }, 10'000));
}

// A file knows what was changed of its model and its cluster: the window shows it, and the next knob keeps it.
TEST_F(Measured, AFileOfAChangedModelAndClusterKeepsWhatWasChanged) {
  MainWindow& w = open();
  Choices changed = small();
  changed.settings = {"model.n_layer=4", "cluster.nvlink.bandwidth=20 GB/s"};
  w.set_choices(changed, "test");
  ASSERT_TRUE(settled());
  const double seconds = w.document()->summary.iteration_time.value;
  save_result(w.document()->result, folder.filePath("p.result").toStdString());
  w.set_choices(small(), "test");
  ASSERT_TRUE(settled());
  w.open_file(folder.filePath("p.result"));
  ASSERT_TRUE(settled());
  EXPECT_TRUE(w.message().isEmpty()) << w.message().toStdString();
  EXPECT_EQ(w.workspace().choices.settings, changed.settings);
  w.keys().action("plan.simulate")->trigger();
  ASSERT_TRUE(settled());
  EXPECT_DOUBLE_EQ(w.document()->summary.iteration_time.value, seconds);
}

// A file of before: what it was made from is not the shipped model, and it does not say what was changed.
TEST_F(Measured, AFileOfAChangedModelSaysSo) {
  MainWindow& w = open();
  Choices changed = small();
  changed.settings = {"model.n_layer=4"};
  w.set_choices(changed, "test");
  ASSERT_TRUE(settled());
  const double seconds = w.document()->summary.iteration_time.value;
  Result before = w.document()->result;
  before.plan.origin = with_json_value(before.plan.origin, "settings", "[]", "test");
  save_result(before, folder.filePath("p.result").toStdString());
  w.open_file(folder.filePath("p.result"));
  ASSERT_TRUE(settled());
  EXPECT_TRUE(w.message().contains("fields were changed")) << w.message().toStdString();
  w.keys().action("plan.simulate")->trigger();  // of the file, not of the shipped model
  ASSERT_TRUE(settled());
  EXPECT_DOUBLE_EQ(w.document()->summary.iteration_time.value, seconds);
}

TEST_F(Measured, ClosingWhileANoteIsTypedIsNoCrash) {
  MainWindow& w = open();
  w.keys().action("go.bookmark")->trigger();
  auto* note = qobject_cast<QLineEdit*>(QApplication::focusWidget());
  ASSERT_NE(note, nullptr);  // letters would be keys of the timeline
  QTest::keyClicks(note, "half a no");
  window.reset();
}

}  // namespace
}  // namespace foreshard::measured_test
