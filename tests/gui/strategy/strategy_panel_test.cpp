#include "gui/strategy/strategy_panel.h"

#include <gtest/gtest.h>

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QSignalSpy>
#include <QTest>

#include "core/base/error.h"
#include "gui/strategy/choice_change.h"
#include "gui/strategy/option_field.h"
#include "gui/widgets/auto_spin_box.h"

namespace foreshard::strategy_panel_test {

namespace {

const char* const kOptions = R"([
  {"path": "tp", "flag": "--tp", "type": "integer", "values": [], "default": "1", "unit": "GPUs", "help": "h", "constraint": "c", "group": "parallelism"},
  {"path": "sequence_parallel", "flag": "", "type": "flag", "values": ["true", "false"], "default": "false", "unit": "", "help": "", "constraint": "", "group": "parallelism"},
  {"path": "schedule", "flag": "--schedule", "type": "choice", "values": ["auto", "gpipe", "1f1b"], "default": "auto", "unit": "", "help": "", "constraint": "", "group": "parallelism"},
  {"path": "reserve", "flag": "", "type": "number", "values": [], "default": "0.06", "unit": "", "help": "", "constraint": "", "group": "memory"},
  {"path": "warp_drive", "flag": "", "type": "quantum", "values": ["x"], "default": "off", "help": "of a later version", "new_key": 3, "group": "later"}])";

class PanelTest : public testing::Test {
 protected:
  PanelTest() {
    panel.set_options(parse_panel_options(kOptions, "test"));
    panel.set_choices(worked_example());
  }
  QLabel* answer() { return panel.findChild<QLabel*>("refusal"); }
  StrategyPanel panel;
};

}  // namespace

TEST(PanelOptions, UnknownTypesAndKeysOfALaterProgramAreTaken) {
  const auto options = parse_panel_options(kOptions, "test");
  ASSERT_EQ(options.size(), 5u);
  EXPECT_EQ(options[4].type, OptionType::Text);
  EXPECT_EQ(options[4].help, "of a later version");
  EXPECT_THROW(parse_panel_options("{", "test"), Error);
  EXPECT_THROW(parse_panel_options(R"([{"flag": "--x"}])", "test"), Error);
  EXPECT_EQ(parse_names(R"([{"name": "a", "layers": 2}, {"name": "b"}])", "test"), (std::vector<std::string>{"a", "b"}));
}

TEST_F(PanelTest, EveryListedOptionHasAField) {
  for (const char* path : {"tp", "sequence_parallel", "schedule", "reserve", "warp_drive"}) {
    ASSERT_NE(panel.field(path), nullptr) << path;
    EXPECT_EQ(panel.field(path)->text(), path == std::string("tp") ? "8" : "");
  }
  EXPECT_EQ(panel.field("no_such"), nullptr);
}

TEST_F(PanelTest, TypingTellsTheChoicesAndEmptyIsAuto) {
  QSignalSpy edited(&panel, &StrategyPanel::edited);
  auto* line = panel.field("tp")->findChild<QLineEdit*>();
  line->selectAll();
  QTest::keyClicks(line, "4");
  ASSERT_EQ(edited.count(), 1);
  EXPECT_EQ(edited[0][1].toString(), "tp");
  EXPECT_EQ(panel.choices().strategy.at("tp"), "4");
  EXPECT_TRUE(panel.valid());
  line->clear();
  EXPECT_FALSE(panel.choices().strategy.contains("tp"));
  EXPECT_EQ(line->placeholderText(), "Auto · 1");
}

// A list of choices without spaces made the panel wider than its window, and cut its fields.
TEST_F(PanelTest, AReasonBreaksAfterEveryComma) {
  panel.show_refusal("found x", {});
  const int narrow = answer()->minimumSizeHint().width();
  panel.show_refusal(
      "attention,norm,qkv,rope,projection,activation,mlp,dropout,attention,norm,qkv,rope,projection,activation,mlp,dropout",
      {});
  EXPECT_LE(answer()->minimumSizeHint().width(), std::max(narrow, 120));
}

TEST_F(PanelTest, AWrongValueIsMarkedAndTheBoxSaysWhy) {
  auto* line = panel.field("tp")->findChild<QLineEdit*>();
  line->setText("eight");
  EXPECT_FALSE(panel.valid());
  EXPECT_TRUE(panel.field("tp")->reason().contains("eight"));
  EXPECT_TRUE(answer()->text().contains("eight"));
  EXPECT_TRUE(answer()->text().contains("<b>tp</b>")) << answer()->text().toStdString();
  EXPECT_EQ(panel.field("reserve")->reason(), "");
  line->setText("8");
  EXPECT_TRUE(panel.valid());
  EXPECT_EQ(panel.field("tp")->reason(), "");
  EXPECT_EQ(answer()->text(), "");
}

// The next click would hit another field.
TEST_F(PanelTest, NoFieldMovesWhenTheProgramSaysMore) {
  panel.resize(310, 900);
  panel.show();
  const auto places = [&] {
    std::vector<QPoint> all;
    for (const char* path : {"tp", "sequence_parallel", "schedule", "reserve"})
      all.push_back(panel.field(path)->mapTo(&panel, QPoint(0, 0)));
    return all;
  };
  QTest::qWait(20);
  const std::vector<QPoint> before = places();
  const auto stays = [&](const char* what) {
    QTest::qWait(20);
    EXPECT_EQ(places(), before) << what;
  };
  panel.show_estimate("about 12 s per step, 40 GiB, bound by compute", false);
  stays("estimate");
  panel.show_refusal("tp 7 x cp 1 x pp 16 = 112 does not divide the 1024 GPUs of dgx-a100", {"--tp 8", "--pp 4", "--dp 2"});
  stays("refusal");
  panel.field("tp")->findChild<QLineEdit*>()->setText("eight");
  stays("wrong value");
  panel.findChild<QLineEdit*>("what_if")->setText("nonsense");
  stays("wrong what-if");
}

TEST_F(PanelTest, ARefusalMarksTheFieldThatItSpeaksOf) {
  panel.show_refusal("tp 7 x cp 1 x pp 16 = 112 does not divide the 1024 GPUs", {"--tp 8"});
  EXPECT_TRUE(panel.field("tp")->reason().contains("112"));
  QLabel* top = answer();
  EXPECT_TRUE(top->text().contains("href=\"--tp 8\""));
  EXPECT_TRUE(top->text().contains("Set tp to 8")) << top->text().toStdString();
  QSignalSpy remedy(&panel, &StrategyPanel::remedy_chosen);
  Q_EMIT top->linkActivated("--tp 8");
  EXPECT_EQ(remedy.count(), 1);
  panel.show_refusal("tp 7 does not divide 12", {"--dp 8"});  // it is 8 already
  EXPECT_FALSE(top->text().contains("help")) << top->text().toStdString();
  panel.show_refusal("stage 0 needs 91.0 GiB with tp 8", {});
  EXPECT_EQ(panel.field("tp")->reason(), "");  // a shortage is nobody's alone
  EXPECT_TRUE(top->text().contains("91.0 GiB"));
  panel.show_refusal({}, {});
  EXPECT_FALSE(top->isVisibleTo(&panel));
}

// Quotes are quotes, with and without a link beside them.
TEST_F(PanelTest, ARefusalIsReadAsItIsWritten) {
  QLabel* top = answer();
  for (const QStringList& remedies : {QStringList(), QStringList("--tp 8")}) {
    panel.show_refusal("model: found \"f\", expected a file", remedies);
    ASSERT_TRUE(top->text().contains("&quot;f&quot;"));
    EXPECT_EQ(top->textFormat(), Qt::RichText);
  }
  panel.show_refusal("tp: found \"<b>\"", {});
  EXPECT_TRUE(top->text().contains("&lt;b&gt;"));
}

TEST_F(PanelTest, ChoosingAnotherModelDropsWhatWasSetOfTheOneBefore) {
  panel.set_names({"gpt3-175b", "llama-2-7b"}, {});
  Choices choices = worked_example();
  choices.settings = {"model.n_layer=4", "cluster.fabric.oversubscription=2"};
  panel.set_choices(choices);
  auto* model = panel.findChild<QComboBox*>();
  model->setEditText("llama-2");  // on the way to a name
  EXPECT_EQ(panel.choices().settings.size(), 2u);
  model->setEditText("llama-2-7b");
  EXPECT_EQ(panel.choices().settings, (std::vector<std::string>{"cluster.fabric.oversubscription=2"}));
}

TEST_F(PanelTest, AutoShowsWhatItCameTo) {
  panel.show_resolved({{"schedule", "1f1b"}, {"sequence_parallel", "false"}});
  EXPECT_EQ(panel.field("schedule")->findChild<QComboBox*>()->itemText(0), "Auto · 1f1b");
  EXPECT_EQ(panel.field("sequence_parallel")->findChild<QComboBox*>()->itemText(0), "Auto · off");
}

TEST_F(PanelTest, ArrowsDoubleAndHalveDegrees) {
  auto* spin = panel.field("tp")->findChild<AutoSpinBox*>();
  spin->stepBy(1);
  EXPECT_EQ(panel.choices().strategy.at("tp"), "16");
  spin->stepBy(-2);
  EXPECT_EQ(panel.choices().strategy.at("tp"), "4");
  for (int i = 0; i < 5; ++i) spin->stepBy(-1);
  EXPECT_EQ(panel.choices().strategy.at("tp"), "1");
}

TEST_F(PanelTest, EveryEditorHasAName) {
  for (QWidget* widget : panel.findChildren<QWidget*>())
    if ((qobject_cast<QComboBox*>(widget) || qobject_cast<AutoSpinBox*>(widget)) && widget->isEnabled()) {
      EXPECT_FALSE(widget->accessibleName().isEmpty()) << widget->metaObject()->className();
    }
}

TEST(ChoiceChange, TurnsOfOneKnobBecomeOneEntry) {
  Choices shown = worked_example();
  QUndoStack stack;
  const auto turn = [&](const char* path, const std::string& value) {
    Choices next = shown;
    next.strategy[path] = value;
    stack.push(new ChoiceChange(shown, next, path, [&](const Choices& to) { shown = to; }));
    shown = next;
  };
  turn("tp", "4");
  turn("tp", "2");
  EXPECT_EQ(stack.count(), 1);
  turn("pp", "8");
  EXPECT_EQ(stack.count(), 2);
  stack.undo();
  EXPECT_EQ(shown.strategy.at("pp"), "16");
  EXPECT_EQ(shown.strategy.at("tp"), "2");
  stack.undo();
  EXPECT_EQ(shown, worked_example());
  stack.redo();
  EXPECT_EQ(shown.strategy.at("tp"), "2");
}

}  // namespace foreshard::strategy_panel_test
