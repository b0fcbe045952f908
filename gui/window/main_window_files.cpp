// Workspaces, results, exports: everything that touches the disk, always with a message instead of a loss.
#include <QDir>
#include <QDockWidget>
#include <QFileDialog>
#include <QFileInfo>
#include <QFutureWatcher>
#include <QMenu>
#include <QPlainTextEdit>
#include <QStatusBar>
#include <QTabWidget>
#include <QTime>
#include <QtConcurrent>

#include "core/base/error.h"
#include "core/json/json.h"
#include "gui/document/background.h"
#include "gui/document/bookmark_list.h"
#include "gui/document/words.h"
#include "gui/search/search_panel.h"
#include "gui/strategy/strategy_panel.h"
#include "gui/window/main_window.h"
#include "report/export/chrome_trace.h"

namespace foreshard {

static constexpr int kRecent = 10;

Choices MainWindow::beginning() const {
  Choices choices = worked_example();
  try {
    if (!options_.session.isEmpty() && QFileInfo::exists(options_.session))
      choices = load_workspace(options_.session.toStdString()).choices;
  } catch (const Error&) {  // a broken session is told where it is opened
  }
  return {.model = choices.model, .cluster = choices.cluster, .nodes = choices.nodes};
}

void MainWindow::start(const QStringList& files) {
  bool restored = false;
  if (files.isEmpty() && !options_.session.isEmpty() && QFileInfo::exists(options_.session)) {
    try {
      show_workspace(load_workspace(options_.session.toStdString()));
      restored = true;
    } catch (const Error& error) {  // never in the way of a start
      log(QString::fromStdString(error.what()));
    }
  }
  if (!restored && files.isEmpty()) {
    choices_ = worked_example();
    strategy_->set_choices(choices_);
    simulate_soon();
    simulate_now();
    if (options_.tour && settings_->value("tour_seen").isNull()) {
      settings_->setValue("tour_seen", true);
      QTimer::singleShot(400, this, &MainWindow::start_tour);
    }
  }
  settle_timer_.start();
  if (!files.isEmpty()) choices_ = beginning();
  for (const QString& file : files) open_file(file);
}

void MainWindow::open_file(const QString& file) {
  const std::string path = QFileInfo(file).absoluteFilePath().toStdString();
  try {
    const FileKind kind = kind_of_file(path);
    switch (kind) {
      case FileKind::Workspace:
        show_workspace(load_workspace(path));
        workspace_file_ = QString::fromStdString(path);
        saved_choices_ = choices_;
        update_title();
        break;
      case FileKind::Result: load_result_file(QString::fromStdString(path)); break;
      case FileKind::Plan:
        result_file_ = QString::fromStdString(path);
        settle_timer_.start();
        simulation_.request_plan(result_file_, granularity_);
        watch(result_file_);
        break;
      case FileKind::Strategy: {
        Choices next = choices_;
        next.strategy = chosen_in(load_strategy(path));
        set_choices(next, tr("Open a strategy"));
        break;
      }
      case FileKind::Model:
      case FileKind::Cluster: {
        Choices next = choices_;
        if (kind == FileKind::Model) next = with_model(std::move(next), path);
        if (kind == FileKind::Cluster) next.cluster = path, next.nodes = 0;
        set_choices(next, kind == FileKind::Model ? tr("Open a model") : tr("Open a cluster"));
        break;
      }
      case FileKind::Unknown:
        tell(About::File,
             tr("%1 is not a foreshard file. foreshard opens workspaces, results, plans, strategies, models and clusters.")
                 .arg(QDir::toNativeSeparators(QString::fromStdString(path))));
        return;
    }
    note_recent(QString::fromStdString(path));
  } catch (const Error& error) {
    tell(About::File, QString::fromStdString(error.what()));
  }
}

void MainWindow::load_result_file(const QString& file) {
  ++loads_;
  settle_timer_.start();
  auto* watcher = new QFutureWatcher<LoadedDocument>(this);
  connect(watcher, &QFutureWatcherBase::finished, this, [this, watcher, file] {
    watcher->deleteLater();
    --loads_;
    const LoadedDocument loaded = watcher->result();
    if (const auto* problem = std::get_if<std::string>(&loaded)) {
      tell(About::File, QString::fromStdString(*problem));
      if (freshness_ == Freshness::Computing && !simulation_.busy() && !debounce_.isActive()) set_freshness(Freshness::Stopped);
      return;
    }
    const auto& document = std::get<std::shared_ptr<const Document>>(loaded);
    banner_->went_well(About::File);
    watch(file);
    const bool of_a_run = document->trace().origin == Origin::Measured;
    if (of_a_run && document_ && document_->trace().origin != Origin::Measured && freshness_ == Freshness::Current &&
        document_->trace().plan_hash == document->trace().plan_hash) {  // of what is shown: beside it
      measured_file_ = file;
      show_measured(document);
      return;
    }
    const auto before = document_;
    debounce_.stop();
    simulation_.cancel();  // it would come over the file
    result_file_ = file;
    show_document(document);
    adopt_origin();
    update_title();
    const bool twin = !of_a_run && before && before->trace().origin == Origin::Measured;  // opened with it, and read sooner
    if (!twin || before->trace().plan_hash != document->trace().plan_hash) return;
    measured_file_ = QString::fromStdString(before->path);
    show_measured(before);
  });
  watcher->setFuture(QtConcurrent::run([file] { return loaded_by([&] { return load_document(file.toStdString()); }); }));
}

// The panel shows what the plan of a file was made from.
void MainWindow::adopt_origin() {
  banner_->went_well(About::Origin);
  if (!document_ || document_->strategy_json.empty()) return;
  try {
    Choices made = {.model = document_->model, .cluster = document_->cluster_name, .settings = document_->settings};
    made.strategy = chosen_in(parse_strategy(document_->strategy_json, document_->path));
    choices_ = shown_choices_ = std::move(made);
    strategy_->set_choices(choices_);
    search_->set_choices(choices_);
    const Strategy strategy = parse_strategy(document_->strategy_json, document_->path);
    const std::int64_t as_it_is = parameter_count(model_of(choices_), strategy.vocab_multiple * widest_tp(strategy));
    if (as_it_is != document_->workload.parameters)
      tell(About::Origin,
           tr("This file is of a %1 whose fields were changed (%2 parameters instead of %3). What was changed is not in the "
              "file: a changed knob simulates the %1 as it is.")
               .arg(QString::fromStdString(document_->model), count_words(document_->workload.parameters),
                    count_words(as_it_is)));
  } catch (const Error& error) {
    log(QString::fromStdString(error.what()));
  }
}

void MainWindow::watch(const QString& file) {
  if (!watcher_.files().isEmpty()) watcher_.removePaths(watcher_.files());
  if (!file.isEmpty()) watcher_.addPath(file);
}

void MainWindow::open_dialog() {
  const QStringList files =
      QFileDialog::getOpenFileNames(this, tr("Open"), {}, tr("Files of foreshard (*.json *.result);;All files (*)"));
  for (const QString& file : files) open_file(file);
}

void MainWindow::save_as() {
  QString file = QFileDialog::getSaveFileName(this, tr("Save workspace"), workspace_file_, tr("Workspaces (*.workspace.json)"));
  if (file.isEmpty()) return;
  if (!file.endsWith(".json")) file += ".workspace.json";
  save_to(file);
}

// "x: found No space left on device, expected a file that can be written", as a person says it.
static QString why_not_saved(const QString& file, const Error& error) {
  const QString text = QString::fromStdString(error.what());
  QString reason = text.contains("found ") ? text.section("found ", 1).section(", expected", 0, 0) : text;
  if (!reason.isEmpty()) reason[0] = reason[0].toLower();
  return MainWindow::tr("Cannot save %1: %2.").arg(QDir::toNativeSeparators(file), reason);
}

void MainWindow::save_to(const QString& file) {
  try {
    save_workspace(workspace(), file.toStdString());
    workspace_file_ = file;
    saved_choices_ = choices_;
    note_recent(file);
    saved(file);
    update_title();
  } catch (const Error& error) {
    tell(About::File, why_not_saved(file, error));
  }
}

void MainWindow::saved(const QString& file) {
  banner_->went_well(About::File);
  log(tr("Saved %1.").arg(file));
  statusBar()->showMessage(tr("Saved %1.").arg(QDir::toNativeSeparators(file)));
}

// "llama [changed] - foreshard": the workspace, else what is shown.
void MainWindow::update_title() {
  QString name = QFileInfo(workspace_file_).fileName();
  if (name.isEmpty()) name = QFileInfo(result_file_).fileName();
  if (name.isEmpty() && !choices_.model.empty())
    name = tr("%1 on %2")
               .arg(QFileInfo(QString::fromStdString(choices_.model)).fileName(),
                    QFileInfo(QString::fromStdString(choices_.cluster)).fileName());
  setWindowTitle(name.isEmpty() ? QStringLiteral("foreshard") : name + QStringLiteral("[*] - foreshard"));
  setWindowModified(!name.isEmpty() && !workspace_file_.isEmpty() && choices_ != saved_choices_);
}

// After every result, so that not even a crash loses more than one change.
void MainWindow::save_session() {
  if (options_.session.isEmpty()) return;
  try {
    QDir().mkpath(QFileInfo(options_.session).absolutePath());
    save_workspace(workspace(), options_.session.toStdString());
  } catch (const Error& error) {
    log(QString::fromStdString(error.what()));
  }
}

Workspace MainWindow::workspace() const {
  Workspace workspace{.choices = choices_, .result = result_file_.toStdString(), .measured = measured_file_.toStdString()};
  workspace.compared = compared_choices_;
  workspace.granularity = granularity_;
  workspace.bookmarks = bookmarks_->bookmarks();
  if (document_) workspace.visible = axis_.visible();
  static const char* const pages[] = {"timeline", "topology", "compare", "table"};
  workspace.page = pages[std::clamp(pages_->currentIndex(), 0, 3)];
  workspace.geometry = saveGeometry().toBase64().toStdString();
  workspace.layout = layout().toBase64().toStdString();
  return workspace;
}

void MainWindow::show_workspace(const Workspace& workspace) {
  choices_ = workspace.choices;
  strategy_->set_choices(choices_);
  shown_choices_ = {};
  undo_.clear();
  granularity_ = workspace.granularity;
  if (QAction* level = keys_.action(QString("plan.detail_%1").arg(static_cast<int>(granularity_)))) level->setChecked(true);
  bookmarks_->set_bookmarks(workspace.bookmarks);
  wanted_range_ = workspace.visible;
  if (!workspace.geometry.empty()) restoreGeometry(QByteArray::fromBase64(QByteArray::fromStdString(workspace.geometry)));
  if (!workspace.layout.empty()) set_layout(QByteArray::fromBase64(QByteArray::fromStdString(workspace.layout)));
  search_->set_choices(choices_);
  if (!workspace.result.empty()) set_freshness(Freshness::Computing);
  if (!workspace.result.empty()) open_file(QString::fromStdString(workspace.result));
  const QString measured = QString::fromStdString(workspace.measured);
  if (workspace.result.empty() || !QFileInfo::exists(QString::fromStdString(workspace.result))) {
    wanted_measured_ = measured;
    simulate_soon();
    simulate_now();
  } else if (!measured.isEmpty()) {
    open_file(measured);
  }
  if (workspace.compared) compare_with(*workspace.compared);
  view(QString::fromStdString(workspace.page));
}

void MainWindow::note_recent(const QString& file) {
  QStringList files = settings_->value("recent").toStringList();
  files.removeAll(file);
  files.prepend(file);
  while (files.size() > kRecent) files.removeLast();
  settings_->setValue("recent", files);
}

void MainWindow::make_recent_menu() {
  recent_->clear();
  for (const QString& file : settings_->value("recent").toStringList())
    connect(recent_->addAction(QFileInfo(file).fileName() + "    " + QDir::toNativeSeparators(QFileInfo(file).path())),
            &QAction::triggered, this, [this, file] { open_file(file); });
  if (recent_->isEmpty()) recent_->addAction(tr("No recent files"))->setEnabled(false);
}

void MainWindow::export_to(ExportKind kind, const QString& file) {
  if (kind == ExportKind::Png) {
    write_png(*this, file, 2);
    return;
  }
  if (!document_) throw Error(file.toStdString(), "", "no result", "a plan that is shown");
  const std::string path = file.toStdString();
  switch (kind) {
    case ExportKind::Png: break;
    case ExportKind::Svg: write_file(path, picture_svg(*document_)); break;
    case ExportKind::Pdf: write_pdf(*document_, file); break;
    case ExportKind::Html:
      write_file(path, html_report(*document_, result_file_.isEmpty() ? command_line("simulate", shown_choices_) : ""));
      break;
    case ExportKind::SpansCsv: write_file(path, spans_csv(*document_)); break;
    case ExportKind::StagesCsv: write_file(path, stages_csv(*document_)); break;
    case ExportKind::ChromeTrace: write_file(path, chrome_trace(document_->result)); break;
  }
}

void MainWindow::export_dialog(ExportKind kind, const QString& filter, const QString& suffix) {
  QString file = QFileDialog::getSaveFileName(this, tr("Export"), {}, filter);
  if (file.isEmpty()) return;
  if (QFileInfo(file).suffix().isEmpty()) file += "." + suffix;
  try {
    export_to(kind, file);
    saved(file);
  } catch (const Error& error) {
    tell(About::File, why_not_saved(file, error));
  }
}

void MainWindow::tell(About about, const QString& message, const QString& remedy, std::function<void()> run) {
  banner_->say(about, message, remedy, std::move(run));
  if (!message.isEmpty()) log(message);
}

void MainWindow::log(const QString& line) { log_->appendPlainText(QTime::currentTime().toString("HH:mm:ss  ") + line); }

}  // namespace foreshard
