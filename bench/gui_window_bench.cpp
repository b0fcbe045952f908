// What a person waits for: the first picture after the start, the new picture after a knob, a large result from a file, and the
// longest time in which the window did not answer. Wall time with the real program as a child; prints a table and asserts nothing.
//
//   gui_window_bench [FORESHARD] [large.result]     (made when it is not there)
//
// Each part runs in a process of its own, started by this one, so that peaks of memory do not mix.
#include <sys/resource.h>

#include <QApplication>
#include <QDir>
#include <QElapsedTimer>
#include <QFile>
#include <QProcess>
#include <QTemporaryDir>
#include <QTimer>
#include <algorithm>
#include <cstdio>
#include <functional>

#include "gui/run/child.h"
#include "gui/timeline/timeline_view.h"
#include "gui/window/main_window.h"

namespace foreshard {
namespace {

double milliseconds(const QElapsedTimer& clock) { return static_cast<double>(clock.nsecsElapsed()) * 1e-6; }

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// A tick every 5 ms; the longest time between two of them is the longest in which nothing else was answered either.
class Watchdog : public QTimer {
 public:
  Watchdog() {
    setTimerType(Qt::PreciseTimer);
    connect(this, &QTimer::timeout, [this] { tick(); });
    start(5);
    clock_.start();
  }
  void begin() {
    clock_.start();
    longest_ = 0;
  }
  double longest() {
    tick();
    return longest_;
  }

 private:
  void tick() {
    longest_ = std::max(longest_, milliseconds(clock_));
    clock_.start();
  }
  QElapsedTimer clock_;
  double longest_ = 0;
};

struct Scene {
  QTemporaryDir folder = {};
  MainWindow window;
  Watchdog watchdog = {};
  explicit Scene(const QString& program)
      : window({.program = program, .settings = folder.filePath("s.ini"), .theme = ThemeName::Dark, .tour = false}) {
    window.resize(1600, 1000);
  }
  // Until a picture with such a document is on the screen; -1: not within a minute.
  double wait(const QElapsedTimer& clock, const std::function<bool()>& there) {
    while (!there()) {
      if (milliseconds(clock) > 60'000) return -1;
      QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
    }
    QCoreApplication::processEvents();  // what became visible is painted
    return milliseconds(clock);
  }
};

int cold(const QString& program) {
  Scene scene(program);
  scene.window.show();
  scene.window.start({});
  QElapsedTimer clock;
  clock.start();
  scene.wait(clock, [&] { return scene.window.document() != nullptr; });
  std::printf("%.1f %.1f\n", peak_megabytes(), scene.watchdog.longest());
  return 0;
}

struct Turn {
  double first = 0, last = 0, stall = 0;  // ms after the debounce until whole stages, until the wanted detail; ms
};

// GPT-3 on 4096 A100s; the ZeRO stage goes to and fro.
int knob(const QString& program, bool layers) {
  static constexpr double kDebounce = 150;
  Scene scene(program);
  scene.window.show();
  scene.window.keys().action(layers ? "plan.detail_1" : "plan.detail_2")->trigger();
  Choices choices = worked_example();
  choices.nodes = 512;
  choices.strategy["dp"] = "32";
  std::vector<Turn> turns;
  for (int turn = 0; turn < 8; ++turn) {
    choices.strategy["zero"] = turn % 2 == 0 ? "1" : "0";
    int pictures = 0;
    const auto counting = QObject::connect(&scene.window, &MainWindow::document_shown, [&] { ++pictures; });
    QElapsedTimer clock;
    clock.start();
    scene.watchdog.begin();
    scene.window.set_choices(choices, "bench");
    Turn now;
    now.first = scene.wait(clock, [&] { return pictures > 0; }) - kDebounce;
    now.last = scene.wait(clock, [&] { return !scene.window.busy(); }) - kDebounce;
    now.stall = scene.watchdog.longest();
    QObject::disconnect(counting);
    if (turn > 0) turns.push_back(now);
  }
  const auto median = [&](double Turn::*field) {
    std::sort(turns.begin(), turns.end(), [&](const Turn& a, const Turn& b) { return a.*field < b.*field; });
    return turns[turns.size() / 2].*field;
  };
  const double stall =
      std::max_element(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) { return a.stall < b.stall; })->stall;
  const double first = median(&Turn::first), last = median(&Turn::last);
  std::printf("%.1f %.1f %.1f %.1f\n", first, last, stall, peak_megabytes());
  return 0;
}

// Opened, zoomed, panned and picked in.
int load(const QString& file) {
  Scene scene({});
  scene.window.show();
  QCoreApplication::processEvents();
  QElapsedTimer clock;
  clock.start();
  scene.watchdog.begin();
  scene.window.open_file(file);
  const double shown = scene.wait(clock, [&] { return scene.window.document() != nullptr; });
  if (shown < 0) return 1;
  scene.window.timeline()->wait_for_levels();
  const double stall = scene.watchdog.longest();
  scene.watchdog.begin();
  for (int i = 0; i < 40; ++i) {
    i < 20 ? scene.window.timeline()->zoom_in() : scene.window.timeline()->zoom_out();
    QCoreApplication::processEvents();
  }
  scene.window.timeline()->worst_bubble();
  QElapsedTimer rest;
  rest.start();
  while (milliseconds(rest) < 300) QCoreApplication::processEvents();
  std::printf("%zu %.1f %.1f %.1f %.1f\n", scene.window.document()->trace().spans.size(), shown, stall,
              scene.watchdog.longest(), peak_megabytes());
  return 0;
}

// The numbers that another run of this program prints, and how long it took to print them.
struct Ran {
  QStringList words = {};
  double wall = 0;
};

Ran in_child(const QString& self, const QStringList& arguments) {
  QProcess child;
  child.setProcessChannelMode(QProcess::ForwardedErrorChannel);
  QElapsedTimer clock;
  clock.start();
  child.start(self, arguments);
  child.waitForReadyRead(120'000);
  Ran ran{.wall = milliseconds(clock)};
  child.waitForFinished(120'000);
  ran.words = QString::fromUtf8(child.readAllStandardOutput()).trimmed().split(' ');
  while (ran.words.size() < 5) ran.words << "?";
  return ran;
}

int all(const QString& self, const QString& program, QString large) {
  const QTemporaryDir folder;
  if (large.isEmpty()) large = folder.filePath("large.result");
  if (!QFile::exists(large)) {
    QProcess make;
    make.start(program, {"simulate", "--model", "gpt3-175b", "--cluster", "dgx-a100-x128", "--tp", "8", "--pp", "16", "--dp",
                         "8", "--global-batch", "3584", "--granularity", "op", "--save-result", large});
    make.waitForFinished(300'000);
  }
  std::vector<double> starts;
  Ran start;
  for (int i = 0; i < 5; ++i) starts.push_back((start = in_child(self, {"--cold", program})).wall);
  std::sort(starts.begin(), starts.end());
  std::printf("%-64s %10s %8s\n", "", "seen", "at most");
  const auto row = [](const char* what, const QString& seen, const char* limit) {
    std::printf("%-64s %10s %8s\n", what, qPrintable(seen), limit);
  };
  row("start to first picture, worked example, ms", QString::number(starts[2], 'f', 0), "1000");
  row("  memory, MB", start.words[0], "");
  for (const bool layers : {false, true}) {
    const Ran turned = in_child(self, {"--knob", program, layers ? "layers" : "stages"});
    std::printf("knob, GPT-3 on 4096 GPUs, detail: %s\n", layers ? "layers" : "stages");
    row("  after the debounce to the first picture, ms", turned.words[0], "250");
    row("  to the picture with that detail, ms", turned.words[1], "250");
    row("  longest stall of the window, ms", turned.words[2], "50");
    row("  memory, MB", turned.words[3], "");
  }
  const Ran loaded = in_child(self, {"--load", large});
  std::printf("result of %s slices from a file of %lld MB\n", qPrintable(loaded.words[0]),
              static_cast<long long>(QFile(large).size() / 1'000'000));
  row("  opened to first picture, ms", loaded.words[1], "");
  row("  longest stall meanwhile, ms", loaded.words[2], "50");
  row("  longest stall while zooming and picking, ms", loaded.words[3], "50");
  row("  memory, MB", loaded.words[4], "400");
  return 0;
}

}  // namespace
}  // namespace foreshard

int main(int count, char** arguments) {
  using namespace foreshard;
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  QTemporaryDir own;
  if (qEnvironmentVariableIsEmpty("XDG_RUNTIME_DIR")) qputenv("XDG_RUNTIME_DIR", own.path().toLocal8Bit());
  const QApplication application(count, arguments);
  const QStringList words = QCoreApplication::arguments();
  if (words.size() > 2 && words[1] == "--cold") return cold(words[2]);
  if (words.size() > 3 && words[1] == "--knob") return knob(words[2], words[3] == "layers");
  if (words.size() > 2 && words[1] == "--load") return load(words[2]);
  const QString beside = QDir(QCoreApplication::applicationDirPath()).filePath("..");
  const QString program = words.size() > 1 ? words[1] : find_program("foreshard", beside);
  if (program.isEmpty()) {
    std::fprintf(stderr, "gui_window_bench: foreshard is neither beside this program's folder nor on PATH\n");
    return 1;
  }
  return all(QCoreApplication::applicationFilePath(), program, words.size() > 2 ? words[2] : QString());
}
