// What is shown is the answer to what is chosen, or it is dim and says that it is not.
#include <QApplication>
#include <QComboBox>
#include <QFrame>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QStatusBar>

#include "core/json/json.h"
#include "gui/run/run_panel.h"
#include "gui/strategy/option_field.h"
#include "gui/strategy/strategy_panel.h"
#include "gui/timeline/timeline_view.h"
#include "gui/window/palette_box.h"
#include "tests/gui/fake_program.h"
#include "tests/gui/open_window.h"

namespace foreshard::freshness_test {
namespace {

class FreshnessTest : public OpenWindow {
 protected:
  QString chip() const {
    auto* frame = window->centralWidget()->findChild<QFrame*>("freshness_chip");
    if (frame == nullptr || !frame->isVisible()) return {};
    return frame->findChild<QLabel*>()->text();
  }
  QPushButton* act() const {
    auto* frame = window->centralWidget()->findChild<QFrame*>("freshness_chip");
    return frame == nullptr ? nullptr : frame->findChild<QPushButton*>();
  }
  bool dim() const {
    auto* veil = window->centralWidget()->findChild<QWidget*>("freshness_veil");
    return veil != nullptr && veil->isVisible();
  }
  // How much brightness there is in the strip of numbers.
  double contrast() const {
    const QImage picture = window->centralWidget()->grab().toImage().convertToFormat(QImage::Format_Grayscale8);
    double brightest = 0, darkest = 255;
    for (int y = 0; y < std::min(80, picture.height()); ++y)
      for (int x = 0; x < picture.width(); ++x) {
        const double value = qGray(picture.pixel(x, y));
        brightest = std::max(brightest, value), darkest = std::min(darkest, value);
      }
    return brightest - darkest;
  }
  QLineEdit* line(const char* path) const { return window->strategy_panel()->field(path)->findChild<QLineEdit*>(); }
};

// A simulation that hangs, then the button of the chip once it can be had.
TEST_F(FreshnessTest, AnOldPictureIsDimWhileTheNewOneIsMadeAndWhenItIsStopped) {
  const FakeProgram program("case \"$*\" in *micro_batch=2*) exec sleep 1000;; esac; exec " FORESHARD_PROGRAM " \"$@\"");
  MainWindow& w = open(program.path());
  EXPECT_FALSE(dim());
  EXPECT_EQ(chip(), "");
  const double bright = contrast();
  line("micro_batch")->setText("2");
  EXPECT_TRUE(dim());
  EXPECT_TRUE(QTest::qWaitFor([&] { return chip().contains("Simulating"); }, 10'000)) << chip().toStdString();
  EXPECT_LT(contrast(), 0.7 * bright);
  EXPECT_FALSE(w.statusBar()->currentMessage().contains("per step")) << w.statusBar()->currentMessage().toStdString();
  w.keys().action("plan.stop")->trigger();
  ASSERT_TRUE(settled());
  EXPECT_TRUE(dim());
  EXPECT_TRUE(chip().contains("Stopped")) << chip().toStdString();
  line("micro_batch")->setText("1");
  ASSERT_TRUE(settled());
  EXPECT_FALSE(dim());
  EXPECT_EQ(chip(), "");
  EXPECT_TRUE(w.statusBar()->currentMessage().contains("per step"));
  line("micro_batch")->setText("2");
  w.keys().action("plan.stop")->trigger();  // before it began
  QTest::qWait(400);
  EXPECT_FALSE(w.busy());
  EXPECT_TRUE(chip().contains("Stopped"));
  ASSERT_NE(act(), nullptr);
  QTest::mouseClick(act(), Qt::LeftButton);
  EXPECT_TRUE(w.busy());
}

TEST_F(FreshnessTest, WhatIsRefusedOrCannotBeReadLeavesADimPictureUntilItIsUndone) {
  MainWindow& w = open();
  const auto shown = w.document();
  line("pp")->setText("7");
  ASSERT_TRUE(settled());
  EXPECT_EQ(w.document(), shown);
  EXPECT_TRUE(dim());
  w.run_panel()->start();  // would run what is not asked for
  EXPECT_FALSE(w.run_panel()->busy());
  EXPECT_TRUE(chip().contains("cannot be simulated")) << chip().toStdString();
  ASSERT_NE(act(), nullptr);
  QTest::mouseClick(act(), Qt::LeftButton);  // takes the change back
  ASSERT_TRUE(settled());
  EXPECT_FALSE(dim());
  EXPECT_EQ(w.workspace().choices, small());
  line("pp")->setText("seven");
  EXPECT_TRUE(dim());
  EXPECT_FALSE(chip().isEmpty());
  ASSERT_TRUE(settled());
  EXPECT_TRUE(dim());
}

// The refusal comes before the estimate, and stays; it proposes nothing that the window cannot do. The message is not dim.
TEST_F(FreshnessTest, WorkThatIsTooLargeSaysSoBelowTheFields) {
  MainWindow& w = open();
  line("global_batch")->setText("4000000");
  ASSERT_TRUE(settled());
  QTest::qWait(300);
  const QString said = w.strategy_panel()->findChild<QLabel*>("refusal")->text();
  EXPECT_TRUE(said.contains("would take about") && said.contains("smaller global batch")) << said.toStdString();
  EXPECT_FALSE(said.contains("--")) << said.toStdString();
  EXPECT_TRUE(dim());
  const QObjectList& parts = w.centralWidget()->children();  // later ones lie above
  EXPECT_GT(parts.indexOf(w.centralWidget()->findChild<QFrame*>("banner")),
            parts.indexOf(w.centralWidget()->findChild<QWidget*>("freshness_veil")));
}

// The answer to what was chosen a moment ago must not undo the dimming.
TEST_F(FreshnessTest, ALateAnswerIsNotTakenForTheNewest) {
  MainWindow& w = open();
  line("micro_batch")->setText("2");
  QTest::qWait(170);  // it is being simulated
  line("micro_batch")->setText("two");
  QTest::qWait(3000);
  ASSERT_TRUE(settled());
  EXPECT_TRUE(dim());
  EXPECT_EQ(w.document()->strategy_json.find("\"micro_batch\": 2"), std::string::npos);
}

TEST_F(FreshnessTest, AMessageGoesWithTheNextGoodAnswer) {
  MainWindow& w = open();
  Choices odd = small();
  odd.model = "no-such-model";
  w.set_choices(odd, "test");
  ASSERT_TRUE(settled());
  ASSERT_TRUE(w.message().contains("no-such-model"));
  w.undo_stack().undo();
  ASSERT_TRUE(settled());
  EXPECT_EQ(w.message(), "");
  w.open_file(folder.filePath("not-there"));  // another thing that is wrong stays
  line("micro_batch")->setText("2");
  ASSERT_TRUE(settled());
  EXPECT_TRUE(w.message().contains("not-there"));
}

TEST_F(FreshnessTest, AModelThatIsNoJsonIsAMessageAlsoUnderAWhatIf) {
  MainWindow& w = open();
  write_file(folder.filePath("bad.json").toStdString(), R"({"architectures": ["LlamaForCausalLM", "hidden_size": })");
  Choices odd = small();
  odd.model = folder.filePath("bad.json").toStdString();
  odd.settings = {"model.n_layer=4"};
  w.set_choices(odd, "test");
  ASSERT_TRUE(settled());
  EXPECT_TRUE(w.message().contains("bad.json")) << w.message().toStdString();
  EXPECT_TRUE(dim());
}

TEST_F(FreshnessTest, UndoIsTheDocumentsAlsoInsideALine) {
  MainWindow& w = open();
  const auto type = [&](const char* path, const char* text) {
    line(path)->setFocus();
    line(path)->selectAll();
    QTest::keyClicks(line(path), text);
  };
  type("dp", "8");
  type("pp", "1");
  ASSERT_EQ(w.workspace().choices.strategy.at("dp"), "8");
  QTest::keyClick(QApplication::focusWidget(), Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(w.workspace().choices.strategy.at("pp"), "2");
  EXPECT_EQ(w.workspace().choices.strategy.at("dp"), "8");
  QTest::keyClick(QApplication::focusWidget(), Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(w.workspace().choices.strategy.at("dp"), "4");
  QTest::keyClick(QApplication::focusWidget(), Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
  EXPECT_EQ(w.workspace().choices.strategy.at("dp"), "8");
  ASSERT_TRUE(settled());
}

TEST_F(FreshnessTest, FocusGoesBackWhereItWas) {
  MainWindow& w = open();
  w.timeline()->setFocus();
  QTest::keyClick(w.timeline(), Qt::Key_K, Qt::ControlModifier);
  QTest::keyClicks(w.palette_box()->line(), "light");
  QTest::keyClick(w.palette_box()->line(), Qt::Key_Return);
  EXPECT_EQ(QApplication::focusWidget(), w.timeline());
  line("dp")->setFocus();
  QWidget* const field = QApplication::focusWidget();
  QTest::keyClick(field, Qt::Key_F, Qt::ControlModifier);
  QTest::keyClick(w.palette_box()->line(), Qt::Key_Escape);
  EXPECT_EQ(QApplication::focusWidget(), field);
  QTest::keyClick(field, Qt::Key_F, Qt::ControlModifier);
  QTest::keyClicks(w.palette_box()->line(), "B0");
  QTest::keyClick(w.palette_box()->line(), Qt::Key_Return);
  EXPECT_EQ(QApplication::focusWidget(), w.timeline());
  EXPECT_NE(w.selection().picked().kind, PickedKind::Nothing);
  ASSERT_TRUE(settled());
}

}  // namespace
}  // namespace foreshard::freshness_test
