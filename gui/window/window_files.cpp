#include "gui/window/window_files.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QFutureWatcher>
#include <QMainWindow>
#include <QMenu>
#include <QtConcurrent>
#include <utility>

#include "core/base/error.h"
#include "core/json/json.h"
#include "gui/compare/policy_view.h"
#include "gui/document/background.h"
#include "gui/document/bookmark_list.h"
#include "gui/search/search_panel.h"
#include "gui/window/dock_panels.h"
#include "gui/window/notices.h"
#include "report/export/chrome_trace.h"

namespace foreshard {

static constexpr int kRecent = 10;

WindowFiles::WindowFiles(QMainWindow& window, ChosenPlan& chosen, ShownPlan& shown, PlanViews& views, DockPanels& docks,
                         Notices& notices, QSettings& settings, const QString& session)
    : window_(window),
      chosen_(chosen),
      shown_(shown),
      views_(views),
      docks_(docks),
      notices_(notices),
      settings_(settings),
      session_(session) {
  connect(&chosen_, &ChosenPlan::changed, this, &WindowFiles::update_title);
  connect(&chosen_, &ChosenPlan::left_file, this, [this] { watch({}); });
  connect(&chosen_, &ChosenPlan::simulated, this, [this] {
    if (!wanted_measured_.isEmpty()) open(std::exchange(wanted_measured_, {}));
  });
  connect(&chosen_, &ChosenPlan::answered, this, &WindowFiles::save_session);
  connect(docks_.bookmarks(), &BookmarkList::changed, this, &WindowFiles::save_session);
  connect(&watcher_, &QFileSystemWatcher::fileChanged, this, [this](const QString& file) {
    notices_.tell(About::File, tr("%1 has changed on disk.").arg(file), tr("Load again"), [this, file] { open(file); });
  });
}

bool WindowFiles::restore_session() {
  if (session_.isEmpty() || !QFileInfo::exists(session_)) return false;
  try {
    show(load_workspace(session_.toStdString()));
    return true;
  } catch (const Error& error) {  // never in the way of a start
    notices_.log(QString::fromStdString(error.what()));
    return false;
  }
}

void WindowFiles::open(const QString& file) {
  const std::string path = QFileInfo(file).absoluteFilePath().toStdString();
  try {
    const FileKind kind = kind_of_file(path);
    switch (kind) {
      case FileKind::Workspace: open_workspace(path); break;
      case FileKind::Result: load_result(QString::fromStdString(path)); break;
      case FileKind::Plan:
        chosen_.simulate_file(QString::fromStdString(path));
        watch(QString::fromStdString(path));
        break;
      case FileKind::Strategy:
      case FileKind::Model:
      case FileKind::Cluster: open_part(kind, path); break;
      case FileKind::Unknown:
        notices_.tell(
            About::File,
            tr("%1 is not a foreshard file. foreshard opens workspaces, results, plans, strategies, models and clusters.")
                .arg(QDir::toNativeSeparators(QString::fromStdString(path))));
        return;
    }
    note_recent(QString::fromStdString(path));
  } catch (const Error& error) {
    notices_.tell(About::File, QString::fromStdString(error.what()));
  }
}

void WindowFiles::open_workspace(const std::string& path) {
  show(load_workspace(path));
  workspace_file_ = QString::fromStdString(path);
  saved_choices_ = chosen_.choices();
  update_title();
}

// Opens a model, cluster or strategy file: it changes the choices.
void WindowFiles::open_part(FileKind kind, const std::string& path) {
  Choices next = chosen_.choices();
  if (kind == FileKind::Strategy) {
    next.strategy = chosen_in(load_strategy(path));
    return chosen_.set_choices(next, tr("Open a strategy"));
  }
  if (kind == FileKind::Model) next = with_model(std::move(next), path);
  if (kind == FileKind::Cluster) next.cluster = path, next.nodes = 0;
  chosen_.set_choices(next, kind == FileKind::Model ? tr("Open a model") : tr("Open a cluster"));
}

void WindowFiles::load_result(const QString& file) {
  ++loads_;
  Q_EMIT began();
  auto* reading = new QFutureWatcher<LoadedDocument>(this);
  connect(reading, &QFutureWatcherBase::finished, this, [this, reading, file] {
    reading->deleteLater();
    --loads_;
    const LoadedDocument loaded = reading->result();
    if (const auto* problem = std::get_if<std::string>(&loaded)) {
      notices_.tell(About::File, QString::fromStdString(*problem));
      return chosen_.result_refused();
    }
    take_result(std::get<std::shared_ptr<const Document>>(loaded), file);
  });
  reading->setFuture(QtConcurrent::run([file] { return loaded_by([&] { return load_document(file.toStdString()); }); }));
}

void WindowFiles::take_result(const std::shared_ptr<const Document>& document, const QString& file) {
  notices_.went_well(About::File);
  watch(file);
  const auto before = shown_.document();
  const bool of_a_run = document->trace().origin == Origin::Measured;
  if (of_a_run && before && before->trace().origin != Origin::Measured && chosen_.freshness() == Freshness::Current &&
      before->trace().plan_hash == document->trace().plan_hash)  // of what is shown: beside it
    return shown_.show_measured(document, file);
  chosen_.show_result(document, file);
  update_title();
  const bool twin = !of_a_run && before && before->trace().origin == Origin::Measured;  // opened with it, and read sooner
  if (twin && before->trace().plan_hash == document->trace().plan_hash)
    shown_.show_measured(before, QString::fromStdString(before->path));
}

void WindowFiles::save() {
  if (workspace_file_.isEmpty())
    save_as();
  else
    save_to(workspace_file_);
}

Choices WindowFiles::beginning() const {
  Choices choices = worked_example();
  try {
    if (!session_.isEmpty() && QFileInfo::exists(session_)) choices = load_workspace(session_.toStdString()).choices;
  } catch (const Error&) {  // a broken session is told where it is opened
  }
  return {.model = choices.model, .cluster = choices.cluster, .nodes = choices.nodes};
}

void WindowFiles::watch(const QString& file) {
  if (!watcher_.files().isEmpty()) watcher_.removePaths(watcher_.files());
  if (!file.isEmpty()) watcher_.addPath(file);
}

void WindowFiles::open_dialog() {
  const QStringList files =
      QFileDialog::getOpenFileNames(&window_, tr("Open"), {}, tr("Files of foreshard (*.json *.result);;All files (*)"));
  for (const QString& file : files) open(file);
}

void WindowFiles::save_as() {
  QString file =
      QFileDialog::getSaveFileName(&window_, tr("Save workspace"), workspace_file_, tr("Workspaces (*.workspace.json)"));
  if (file.isEmpty()) return;
  if (!file.endsWith(".json")) file += ".workspace.json";
  save_to(file);
}

// "x: found No space left on device, expected a file that can be written", in plain words.
static QString why_not_saved(const QString& file, const Error& error) {
  const QString text = QString::fromStdString(error.what());
  QString reason = text.contains("found ") ? text.section("found ", 1).section(", expected", 0, 0) : text;
  if (!reason.isEmpty()) reason[0] = reason[0].toLower();
  return WindowFiles::tr("Cannot save %1: %2.").arg(QDir::toNativeSeparators(file), reason);
}

void WindowFiles::save_to(const QString& file) {
  try {
    save_workspace(workspace(), file.toStdString());
    workspace_file_ = file;
    saved_choices_ = chosen_.choices();
    note_recent(file);
    saved(file);
    update_title();
  } catch (const Error& error) {
    notices_.tell(About::File, why_not_saved(file, error));
  }
}

void WindowFiles::saved(const QString& file) {
  notices_.went_well(About::File);
  notices_.log(tr("Saved %1.").arg(file));
  notices_.show_status(tr("Saved %1.").arg(QDir::toNativeSeparators(file)));
}

// "llama [changed] - foreshard": the workspace, else what is shown.
void WindowFiles::update_title() {
  QString name = QFileInfo(workspace_file_).fileName();
  if (name.isEmpty()) name = QFileInfo(chosen_.result_file()).fileName();
  if (name.isEmpty() && !chosen_.choices().model.empty())
    name = tr("%1 on %2")
               .arg(QFileInfo(QString::fromStdString(chosen_.choices().model)).fileName(),
                    QFileInfo(QString::fromStdString(chosen_.choices().cluster)).fileName());
  window_.setWindowTitle(name.isEmpty() ? QStringLiteral("foreshard") : name + QStringLiteral("[*] - foreshard"));
  window_.setWindowModified(!name.isEmpty() && !workspace_file_.isEmpty() && chosen_.choices() != saved_choices_);
}

void WindowFiles::save_session() {
  if (session_.isEmpty()) return;
  try {
    QDir().mkpath(QFileInfo(session_).absolutePath());
    save_workspace(workspace(), session_.toStdString());
  } catch (const Error& error) {
    notices_.log(QString::fromStdString(error.what()));
  }
}

Workspace WindowFiles::workspace() const {
  Workspace workspace{.choices = chosen_.choices(),
                      .result = chosen_.result_file().toStdString(),
                      .measured = shown_.measured_file().toStdString()};
  workspace.compared = shown_.compared_choices();
  workspace.granularity = chosen_.granularity();
  workspace.bookmarks = docks_.bookmarks()->bookmarks();
  if (shown_.document()) workspace.visible = views_.axis().visible();
  workspace.page = views_.page();
  workspace.geometry = window_.saveGeometry().toBase64().toStdString();
  workspace.layout = docks_.layout().toBase64().toStdString();
  return workspace;
}

void WindowFiles::show(const Workspace& workspace) {
  chosen_.begin_with(workspace.choices);
  shown_.set_choices({});
  chosen_.forget_changes();
  chosen_.set_granularity(workspace.granularity);
  Q_EMIT restored();
  docks_.bookmarks()->set_bookmarks(workspace.bookmarks);
  shown_.show_range_next(workspace.visible);
  if (!workspace.geometry.empty())
    window_.restoreGeometry(QByteArray::fromBase64(QByteArray::fromStdString(workspace.geometry)));
  if (!workspace.layout.empty()) docks_.set_layout(QByteArray::fromBase64(QByteArray::fromStdString(workspace.layout)));
  docks_.search()->set_choices(chosen_.choices());
  views_.policies()->set_choices(chosen_.choices());
  if (!workspace.result.empty()) chosen_.set_freshness(Freshness::Computing);
  if (!workspace.result.empty()) open(QString::fromStdString(workspace.result));
  const QString measured = QString::fromStdString(workspace.measured);
  if (workspace.result.empty() || !QFileInfo::exists(QString::fromStdString(workspace.result))) {
    wanted_measured_ = measured;
    chosen_.simulate_soon();
    chosen_.simulate_now();
  } else if (!measured.isEmpty()) {
    open(measured);
  }
  if (workspace.compared) shown_.compare_with(*workspace.compared);
  const QString page = QString::fromStdString(workspace.page);
  if (views_.bring(page) == nullptr) docks_.bring(page);
}

void WindowFiles::note_recent(const QString& file) {
  QStringList files = settings_.value("recent").toStringList();
  files.removeAll(file);
  files.prepend(file);
  while (files.size() > kRecent) files.removeLast();
  settings_.setValue("recent", files);
}

void WindowFiles::fill_recent(QMenu& menu) {
  menu.clear();
  for (const QString& file : settings_.value("recent").toStringList())
    connect(menu.addAction(QFileInfo(file).fileName() + "    " + QDir::toNativeSeparators(QFileInfo(file).path())),
            &QAction::triggered, this, [this, file] { open(file); });
  if (menu.isEmpty()) menu.addAction(tr("No recent files"))->setEnabled(false);
}

void WindowFiles::export_to(ExportKind kind, const QString& file) {
  if (kind == ExportKind::Png) {
    write_png(window_, file, 2);
    return;
  }
  if (!shown_.document()) throw Error(file.toStdString(), "", "no result", "a plan that is shown");
  const std::string path = file.toStdString();
  switch (kind) {
    case ExportKind::Png: break;
    case ExportKind::Svg: write_file(path, picture_svg(*shown_.document())); break;
    case ExportKind::Pdf: write_pdf(*shown_.document(), file); break;
    case ExportKind::Html:
      write_file(path, html_report(*shown_.document(),
                                   chosen_.result_file().isEmpty() ? command_line("simulate", shown_.choices()) : ""));
      break;
    case ExportKind::SpansCsv: write_file(path, spans_csv(*shown_.document())); break;
    case ExportKind::StagesCsv: write_file(path, stages_csv(*shown_.document())); break;
    case ExportKind::ChromeTrace: write_file(path, chrome_trace(shown_.document()->result)); break;
  }
}

void WindowFiles::export_dialog(ExportKind kind, const QString& filter, const QString& suffix) {
  QString file = QFileDialog::getSaveFileName(&window_, tr("Export"), {}, filter);
  if (file.isEmpty()) return;
  if (QFileInfo(file).suffix().isEmpty()) file += "." + suffix;
  try {
    export_to(kind, file);
    saved(file);
  } catch (const Error& error) {
    notices_.tell(About::File, why_not_saved(file, error));
  }
}

}  // namespace foreshard
