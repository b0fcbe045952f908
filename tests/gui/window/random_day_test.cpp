// A day at the window, drawn at random: knobs, files, keys, clicks, sizes, themes and languages in an order that nobody
// planned. After every few steps the program on the command line is asked the same, and what the window shows as current has
// to be its answer. FORESHARD_DAY_STEPS and FORESHARD_DAY_SEED make a longer day, or another one.
#include <QApplication>
#include <QLineEdit>
#include <QMenuBar>
#include <QProcess>
#include <QStatusBar>
#include <algorithm>
#include <fstream>
#include <random>

#include "core/json/json.h"
#include "core/strategy/strategy_options.h"
#include "gui/run/run_panel.h"
#include "gui/search/search_panel.h"
#include "gui/strategy/option_field.h"
#include "gui/strategy/strategy_panel.h"
#include "gui/timeline/timeline_view.h"
#include "gui/widgets/language.h"
#include "tests/gui/open_window.h"
#include "tests/how_many.h"

namespace foreshard::random_day_test {
namespace {

using Words = std::vector<std::string>;

class RandomDay : public OpenWindow {
 protected:
  void SetUp() override {
    // What opens over the window and waits for an answer is closed, as with Escape.
    closer_.setInterval(150);
    QObject::connect(&closer_, &QTimer::timeout, [] {
      if (QWidget* popup = QApplication::activePopupWidget()) popup->close();
      if (QWidget* box = QApplication::activeModalWidget()) box->close();
    });
    closer_.start();
    random_.seed(static_cast<std::uint64_t>(std::max(1, qEnvironmentVariableIntValue("FORESHARD_DAY_SEED"))));
    make_files();
  }

  std::size_t below(std::size_t count) { return random_() % count; }
  bool one_in(std::size_t count) { return below(count) == 0; }
  template <class All>
  auto any(const All& all) {
    return *std::next(all.begin(), static_cast<std::ptrdiff_t>(below(all.size())));
  }
  std::string file(const std::string& name) const { return folder.filePath(QString::fromStdString(name)).toStdString(); }
  void note(const std::string& step) { done_ += "\n  " + std::to_string(++steps_) + " " + step; }

  int ask(const Words& words, QByteArray* out = nullptr) {
    QProcess program;
    QStringList list;
    for (const std::string& word : words) list << QString::fromStdString(word);
    program.start(FORESHARD_PROGRAM, list);
    EXPECT_TRUE(program.waitForFinished(120'000)) << done_;
    if (out != nullptr) *out = program.readAllStandardOutput();
    return program.exitStatus() == QProcess::NormalExit ? program.exitCode() : -1;
  }

  void make_files() {
    const Words job = {"--model",        "gpt2-124m",
                       "--cluster",      "dgx-a100",
                       "--nodes",        "1",
                       "--gpus",         "2",
                       "--pp",           "2",
                       "--seq",          "64",
                       "--global-batch", "4",
                       "--precision",    "fp32",
                       "--set",          "model.n_layer=2",
                       "--set",          "model.n_embd=64",
                       "--set",          "model.n_head=2",
                       "--set",          "model.vocab_size=256"};
    Words lower = {"lower", "--save-plan", file("p.plan.json")};
    lower.insert(lower.end(), job.begin(), job.end());
    ASSERT_EQ(ask(lower), 0);
    ASSERT_EQ(ask({"simulate", "--plan", file("p.plan.json"), "--save-result", file("p.result")}), 0);
    ASSERT_EQ(ask({"run", file("p.plan.json"), "--steps", "1", "--save-result", file("m.result")}), 0);
    write_file(file("bad.json"), R"({"architectures": ["LlamaForCausalLM", "hidden_size": })");
    write_file(file("empty.json"), "");
    write_file(file("deep.json"), std::string(5000, '['));
    write_file(file("other.json"), R"({"format": "foreshard workspace", "version": 99})");
    files_ = {"p.plan.json", "p.result", "m.result", "bad.json", "empty.json", "deep.json", "other.json", "none.json", "."};
  }

  // A copy in which some bytes are others.
  std::string damaged(const std::string& name) {
    std::ifstream in(file(name), std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    for (std::size_t n = 0; n < 3 && !text.empty(); ++n) text[below(text.size())] = static_cast<char>(' ' + below(90));
    if (one_in(4) && !text.empty()) text.resize(below(text.size()));
    write_file(file("damaged.json"), text);
    return file("damaged.json");
  }

  void turn_a_knob() {
    static const Words values = {"1", "2",  "3",    "4",    "8",    "16",        "64",   "",     "0",    "-1",
                                 "x", "1+", "none", "full", "auto", "selective", "true", "bf16", "1f1b", "99999999999"};
    static const Words models = {"gpt2-124m", "gpt2-1.5b",    "llama-3-8b", "bert-large", "resnet-50",
                                 "vgg-16",    "megatron-18b", "toy-matmul", "f"};
    static const Words clusters = {"dgx-a100",  "dgx-h100",    "gb200-nvl72", "workstation-rtx4090",
                                   "dgx1-v100", "pcie-a100-8", "dgx-b200",    "nothing"};
    static const Words what_ifs = {"model.n_layer=4",
                                   "model.num_hidden_layers=2",
                                   "cluster.fabric.oversubscription=4",
                                   "model.n_layer={",
                                   "cluster.nothing=1",
                                   "nonsense",
                                   "cluster.nodes=2",
                                   "model.n_head=3"};
    Choices next = one_in(8) ? small() : window->workspace().choices;  // else nearly all of the day is refused
    switch (below(6)) {
      case 0: next = with_model(next, one_in(8) ? file("bad.json") : any(models)); break;
      case 1: next.cluster = any(clusters), next.nodes = 0; break;
      case 2: next.nodes = static_cast<int>(below(5)); break;
      case 3: next.settings = one_in(2) ? Words{} : Words{any(what_ifs)}; break;
      default: {
        const StrategyOption& option = strategy_options()[below(strategy_options().size())];
        const std::string path =
            one_in(2) ? any(Words{"dp", "tp", "pp", "micro_batch", "global_batch", "zero", "recompute"}) : option.path;
        if (one_in(3)) {
          next.strategy.erase(path);
        } else if (auto* line = window->strategy_panel()->field(path) == nullptr
                                    ? nullptr
                                    : window->strategy_panel()->field(path)->findChild<QLineEdit*>()) {
          const std::string value = any(values);
          note("type " + path + " \"" + value + "\"");
          line->setText(QString::fromStdString(value));
          return;
        }
      }
    }
    note("choose " + command_line("simulate", next));
    window->set_choices(next, "knob");
  }

  void act() {
    static const QStringList left_out = {"file.quit"};
    const KeyEntry& entry = window->keys().entries()[below(window->keys().entries().size())];
    if (left_out.contains(entry.name) || entry.name.startsWith("language.") || entry.name.contains("lang")) return;
    note("action " + entry.name.toStdString());
    entry.action->trigger();
  }

  void press_a_key() {
    static const std::vector<Qt::Key> keys = {Qt::Key_Left,      Qt::Key_Right,  Qt::Key_Up,       Qt::Key_Down, Qt::Key_Tab,
                                              Qt::Key_Space,     Qt::Key_F6,     Qt::Key_N,        Qt::Key_F,    Qt::Key_M,
                                              Qt::Key_Backspace, Qt::Key_Return, Qt::Key_Escape,   Qt::Key_Plus, Qt::Key_Minus,
                                              Qt::Key_0,         Qt::Key_B,      Qt::Key_PageDown, Qt::Key_Z,    Qt::Key_A,
                                              Qt::Key_P,         Qt::Key_F1,     Qt::Key_Home,     Qt::Key_End};
    QWidget* const to = QApplication::focusWidget() != nullptr ? QApplication::focusWidget() : window.get();
    const Qt::Key key = any(keys);
    const Qt::KeyboardModifiers with = one_in(3) && key != Qt::Key_F ? Qt::ControlModifier
                                       : one_in(4)                   ? Qt::ShiftModifier
                                                                     : Qt::NoModifier;
    note("key " + QKeySequence(key | with).toString().toStdString() + " to " + to->metaObject()->className());
    QTest::keyClick(to, key, with);
  }

  void click() {
    std::vector<QWidget*> seen;
    for (QWidget* widget : window->findChildren<QWidget*>())
      if (widget->isVisible() && widget->width() > 2 && widget->height() > 2 && !window->menuBar()->isAncestorOf(widget) &&
          widget != window->menuBar())
        seen.push_back(widget);
    if (seen.empty()) return;
    QWidget* const target = any(seen);
    const QPoint at(static_cast<int>(below(static_cast<std::size_t>(target->width()))),
                    static_cast<int>(below(static_cast<std::size_t>(target->height()))));
    note(std::string("mouse on ") + target->metaObject()->className() + " " + target->objectName().toStdString() + " " +
         std::to_string(at.x()) + "," + std::to_string(at.y()));
    switch (below(4)) {
      case 0: QTest::mouseDClick(target, Qt::LeftButton, {}, at); break;
      case 1: {
        const QPoint to(static_cast<int>(below(static_cast<std::size_t>(target->width()))),
                        static_cast<int>(below(static_cast<std::size_t>(target->height()))));
        QTest::mousePress(target, Qt::LeftButton, {}, at);
        QTest::mouseMove(target, to);
        QTest::mouseRelease(target, Qt::LeftButton, {}, to);
        break;
      }
      default: QTest::mouseClick(target, Qt::LeftButton, one_in(4) ? Qt::ControlModifier : Qt::NoModifier, at);
    }
  }

  void open_a_file() {
    const std::string name = any(files_);
    const bool hurt = one_in(3) && name != "." && name != "none.json";
    note("open " + std::string(hurt ? "a damaged " : "") + name);
    window->open_file(QString::fromStdString(hurt ? damaged(name) : file(name)));
  }

  void look_otherwise() {
    switch (below(4)) {
      case 0: {
        const int width = 400 + static_cast<int>(below(2000)), height = 300 + static_cast<int>(below(1100));
        note("size " + std::to_string(width) + "x" + std::to_string(height));
        window->resize(width, height);
        break;
      }
      case 1:
        note("theme"), window->set_theme(any(std::vector{ThemeName::Dark, ThemeName::Light, ThemeName::HighContrast}));
        break;
      case 2: {
        note("start again in another language");
        const Workspace kept = window->workspace();
        window.reset();
        language_.reset();
        language_ = std::make_unique<Language>(one_in(2) ? "zh_CN" : "en");
        begin_window();
        window->show_workspace(kept);
        break;
      }
      default: {
        const QString view = any(QStringList{"timeline", "topology", "compare", "table", "search", "run", "inspector",
                                             "bookmarks", "log", "strategy"});
        note("view " + view.toStdString());
        window->view(view);
      }
    }
  }

  void work_beside() {
    switch (below(5)) {
      case 0: note("search"), window->search_panel()->set_refined(2), window->search_panel()->start(); break;
      case 1: note("stop the search"), window->search_panel()->stop(); break;
      case 2: note("run"), window->run_panel()->start(); break;
      case 3: note("stop the run"), window->run_panel()->stop(); break;
      default: note("compare"), window->compare_with(window->workspace().choices);
    }
  }

  void begin_window() {
    window = std::make_unique<MainWindow>(WindowOptions{.program = FORESHARD_PROGRAM,
                                                        .settings = folder.filePath("s.ini"),
                                                        .session = folder.filePath("session.json"),
                                                        .size = {1600, 1000},
                                                        .tour = false});
    window->show();
    window->activateWindow();
  }

  // Waits until nothing is under way; work that is meant to be long is stopped.
  bool rest() {
    QTest::qWait(250);
    if (QTest::qWaitFor([&] { return !window->busy(); }, 8'000)) return true;
    note("stop all");
    window->keys().action("plan.stop")->trigger();
    return QTest::qWaitFor([&] { return !window->busy(); }, 60'000);
  }

  // What is shown as current is what the program answers to the same question.
  void expect_the_truth() {
    ASSERT_TRUE(rest()) << done_;
    ASSERT_FALSE(window->message().contains("nternal error")) << window->message().toStdString() << done_;
    if (window->freshness() != Freshness::Current || !window->document() || !window->workspace().result.empty()) return;
    Words words = {"simulate", "--json", "--ignore-memory", "--progress", "none"};
    const Words job = job_words(window->workspace().choices);
    words.insert(words.end(), job.begin(), job.end());
    QByteArray out;
    const int code = ask(words, &out);
    ASSERT_TRUE(code == 0 || code == 2) << code << " for " << command_line("simulate", window->workspace().choices) << done_;
    const JsonReader json = JsonReader::parse(out.toStdString(), "simulate");
    const Summary& shown = window->document()->summary;
    ASSERT_TRUE(json.has("iteration_time_s")) << command_line("simulate", window->workspace().choices) << done_;
    ASSERT_NEAR(json.at("iteration_time_s").as_double(), shown.iteration_time.value, 1e-9 * shown.iteration_time.value)
        << command_line("simulate", window->workspace().choices) << done_;
    ASSERT_EQ(json.at("feasible").as_bool(), shown.feasible) << done_;
    done_.clear();  // all of this was right
    ++checked_;
  }

  std::mt19937_64 random_;
  QTimer closer_;
  std::unique_ptr<Language> language_;
  Words files_;
  std::string done_;
  int steps_ = 0, checked_ = 0;
};

TEST_F(RandomDay, WhatIsShownAsCurrentIsTheAnswerToTheKnobs) {
  const int many = qEnvironmentVariableIntValue("FORESHARD_DAY_STEPS") > 0 ? qEnvironmentVariableIntValue("FORESHARD_DAY_STEPS")
                                                                           : how_many(12, 30);
  begin_window();
  window->set_choices(small(), "begin");
  for (int step = 0; step < many; ++step) {
    switch (below(12)) {
      case 0:
      case 1: act(); break;
      case 2:
      case 3: press_a_key(); break;
      case 4:
      case 5: click(); break;
      case 6: open_a_file(); break;
      case 7: look_otherwise(); break;
      case 8: work_beside(); break;
      default: turn_a_knob();
    }
    if (one_in(3)) QTest::qWait(static_cast<int>(below(400)));
    if (one_in(5)) expect_the_truth();
    if (window->freshness() == Freshness::Refused && one_in(3)) note("undo"), window->undo_stack().undo();
    if (HasFatalFailure()) return;
    if (!window->isVisible()) window->show();
  }
  window->set_choices(small(), "end");
  expect_the_truth();
  EXPECT_EQ(window->freshness(), Freshness::Current) << done_;
  EXPECT_GT(checked_, 0);
  RecordProperty("checked", checked_);
  std::printf("%d steps, %d answers compared\n", steps_, checked_);
}

}  // namespace
}  // namespace foreshard::random_day_test
