// foreshard-gui: reads its own options, prepares language and platform, and opens the window.
#include <QApplication>
#include <QCommandLineParser>
#include <QDir>
#include <QFileInfo>
#include <QStandardPaths>
#include <cstdio>

#include "gui/run/child.h"
#include "gui/widgets/language.h"
#include "gui/widgets/outline_style.h"
#include "gui/window/main_window.h"
#include "gui/window/screenshot.h"

namespace {

using namespace foreshard;

int complain(const QString& text) {
  std::fprintf(stderr, "foreshard-gui: %s\n", qPrintable(text));
  return 1;
}

void add_options(QCommandLineParser& parser) {
  parser.setApplicationDescription("Shows how a plan trains a model: time, bubbles and memory; searches and runs plans.");
  parser.addHelpOption();
  parser.addPositionalArgument("FILE", "workspaces, results, plans, strategies, models or clusters", "[FILE...]");
  parser.addOption({"program", "the foreshard program (default: beside this one, else on PATH)", "FILE"});
  parser.addOption({"theme", "dark, light or contrast", "NAME"});
  parser.addOption({"lang", "en or zh_CN (default: as the system)", "CODE"});
  parser.addOption({"scale", "size of everything, 1 to 4", "X"});
  parser.addOption({"size", "of the window (default 1600x1000, smaller where the screen is)", "WxH"});
  parser.addOption({"screenshot", "save a picture and end; works without a display", "FILE"});
  parser.addOption({"export", "save what is shown as .html, .pdf, .svg, .png, .csv or .json (Chrome trace) and end", "FILE"});
  parser.addOption({"view", "of the picture: " + shot_views().join(", "), "NAME", "window"});
}

// The value of the option --name in the raw arguments: some options are needed before a QApplication exists.
QByteArray early(int count, char** arguments, const char* name) {
  for (int i = 1; i < count; ++i) {
    const QByteArray word(arguments[i]);
    if (word == QByteArray("--") + name && i + 1 < count) return arguments[i + 1];
    if (word.startsWith(QByteArray("--") + name + "=")) return word.mid(static_cast<qsizetype>(qstrlen(name)) + 3);
  }
  return {};
}

bool has_display() { return qEnvironmentVariableIsSet("DISPLAY") || qEnvironmentVariableIsSet("WAYLAND_DISPLAY"); }

std::optional<ThemeName> theme_named(const QString& name) {
  if (name == "dark") return ThemeName::Dark;
  if (name == "light") return ThemeName::Light;
  if (name == "contrast") return ThemeName::HighContrast;
  return {};
}

// Reads the options. Returns the error message; empty: they are valid.
QString read(const QCommandLineParser& parser, WindowOptions& options, ShotRequest& shot) {
  if (parser.isSet("theme")) {
    options.theme = theme_named(parser.value("theme"));
    if (!options.theme) return QString("--theme: found \"%1\", expected dark, light or contrast").arg(parser.value("theme"));
  }
  if (parser.isSet("size")) {
    const QStringList sides = parser.value("size").split('x');
    if (sides.size() == 2) shot.width = sides[0].toInt(), shot.height = sides[1].toInt();
    if (sides.size() != 2 || shot.width < 400 || shot.height < 300 || shot.width > 20000 || shot.height > 20000)
      return QString("--size: found \"%1\", expected WIDTHxHEIGHT, such as 1600x1000").arg(parser.value("size"));
  }
  if (parser.isSet("size")) options.size = {shot.width, shot.height};
  shot.file = parser.value(parser.isSet("export") ? "export" : "screenshot");
  if (parser.isSet("export") && !(shot.kind = export_kind(shot.file)))
    return QString("--export: found \"%1\", expected a name that ends with .html, .pdf, .svg, .png, .csv or .json")
        .arg(shot.file);
  shot.view = parser.value("view");
  if (!shot_views().contains(shot.view))
    return QString("--view: found \"%1\", expected one of %2").arg(shot.view, shot_views().join(", "));
  options.program =
      parser.isSet("program") ? parser.value("program") : find_program("foreshard", QApplication::applicationDirPath());
  if (!shot.file.isEmpty()) {  // a picture depends on nothing but the command
    options.settings = QDir::temp().filePath(QString("foreshard-gui-%1.ini").arg(QCoreApplication::applicationPid()));
    options.tour = false;
    if (!options.theme) options.theme = ThemeName::Dark;
  } else {
    options.session = QStandardPaths::writableLocation(QStandardPaths::AppDataLocation) + "/session.workspace.json";
  }
  return {};
}

int shoot(MainWindow& window, const ShotRequest& shot) {
  Screenshot screenshot(window, shot);
  QString problem;
  QObject::connect(&screenshot, &Screenshot::done, [&](const QString& text) {
    problem = text;
    QApplication::exit(0);
  });
  window.show();
  QApplication::exec();
  return problem.isEmpty() ? 0 : complain(problem);
}

}  // namespace

int main(int count, char** arguments) {
  const QByteArray scale = early(count, arguments, "scale");
  if (!scale.isEmpty()) qputenv("QT_SCALE_FACTOR", scale);
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM") && !has_display() &&
      (!early(count, arguments, "screenshot").isEmpty() || !early(count, arguments, "export").isEmpty()))
    qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(count, arguments);
  QApplication::setApplicationName("foreshard-gui");
  QApplication::setOrganizationName("foreshard");
  QApplication::setStyle(new OutlineStyle);
  QCommandLineParser parser;
  add_options(parser);
  parser.process(application);
  WindowOptions options;
  ShotRequest shot;
  if (const QString problem = read(parser, options, shot); !problem.isEmpty()) return complain(problem);
  for (;;) {
    const std::string wanted = parser.value("lang").toStdString();
    if (!wanted.empty() && !speaks(wanted))
      return complain(QString("--lang: found \"%1\", expected en or zh_CN").arg(parser.value("lang")));
    if (!wanted.empty() && !can_show(wanted))
      std::fprintf(stderr, "foreshard-gui: --lang %s: no font has its letters; install one, such as fonts-noto-cjk\n",
                   wanted.c_str());
    const Language language(wanted.empty() && shot.file.isEmpty() ? chosen_language() : wanted.empty() ? "en" : wanted);
    MainWindow window(options);
    window.start(parser.positionalArguments());
    if (!shot.file.isEmpty()) {
      const int code = shoot(window, shot);
      QFile::remove(options.settings);
      return code;
    }
    window.show();
    if (QApplication::exec() != kStartAgain) return 0;
  }
}
