// Menus, keys and the palette: every action once, in a menu, rebindable, and found by a few letters.
#include <QActionGroup>
#include <QApplication>
#include <QDesktopServices>
#include <QDockWidget>
#include <QLocale>
#include <QMenuBar>
#include <QPlainTextEdit>
#include <QStatusBar>
#include <QTabWidget>
#include <QToolBar>
#include <algorithm>
#include <functional>

#include "gui/compare/compare_view.h"
#include "gui/document/bookmark_list.h"
#include "gui/document/find_hits.h"
#include "gui/memory/memory_view.h"
#include "gui/run/run_panel.h"
#include "gui/search/search_panel.h"
#include "gui/strategy/option_field.h"
#include "gui/strategy/strategy_panel.h"
#include "gui/strategy/suggestion_list.h"
#include "gui/timeline/timeline_view.h"
#include "gui/widgets/language.h"
#include "gui/window/help_overlay.h"
#include "gui/window/key_dialog.h"
#include "gui/window/main_window.h"
#include "gui/window/palette_box.h"
#include "gui/window/tour.h"

namespace foreshard {

static const char* const kMenuTitle = "menu title";  // a property of actions

QAction* MainWindow::act(QMenu* menu, const QString& name, const QString& text, const QKeySequence& keys,
                         std::function<void()> run) {
  auto* action = new QAction(text, this);
  connect(action, &QAction::triggered, this, [run = std::move(run)] { run(); });
  menu->addAction(keys_.add(name, action, keys));
  const auto* above = qobject_cast<const QMenu*>(menu->parentWidget());  // a menu in a menu: its title says what the words mean
  action->setProperty(kMenuTitle, above == nullptr ? QString() : plain_text(*menu->menuAction()));
  return action;
}

// One of several: the menu shows which. The first that is added makes the group, those after it in the same menu join.
QAction* MainWindow::choose(QMenu* menu, const QString& name, const QString& text, bool chosen, std::function<void()> run) {
  auto* group = menu->findChild<QActionGroup*>(QString(), Qt::FindDirectChildrenOnly);
  if (group == nullptr) group = new QActionGroup(menu);
  QAction* action = act(menu, name, text, {}, std::move(run));
  action->setCheckable(true);
  action->setChecked(chosen);
  group->addAction(action);
  return action;
}

void MainWindow::make_actions() {
  make_file_menu();
  make_edit_menu();
  make_plan_menu();
  make_view_menu();
  make_go_menu();
  make_help_menu();
}

void MainWindow::make_file_menu() {
  QMenu* menu = menuBar()->addMenu(tr("&File"));
  act(menu, "file.open", tr("&Open …"), QKeySequence::Open, [this] { open_dialog(); });
  recent_ = menu->addMenu(tr("Open &recent"));
  connect(recent_, &QMenu::aboutToShow, this, &MainWindow::make_recent_menu);
  act(menu, "file.save", tr("&Save workspace"), QKeySequence::Save, [this] {
    if (workspace_file_.isEmpty())
      save_as();
    else
      save_to(workspace_file_);
  });
  act(menu, "file.save_as", tr("Save workspace &as …"), QKeySequence("Ctrl+Shift+S"), [this] { save_as(); });
  act(menu, "file.example", tr("Open &example: GPT-3 175B"), {},
      [this] { set_choices(worked_example(), tr("Open the example")); });
  menu->addSeparator();
  QMenu* out = menu->addMenu(tr("&Export"));
  const auto add = [&](const char* name, const QString& text, ExportKind kind, const QString& filter, const QString& suffix) {
    act(out, name, text, {}, [this, kind, filter, suffix] { export_dialog(kind, filter, suffix); });
  };
  add("file.export_html", tr("&Report (HTML) …"), ExportKind::Html, tr("Reports (*.html)"), "html");
  add("file.export_png", tr("Picture of the window (&PNG) …"), ExportKind::Png, tr("Pictures (*.png)"), "png");
  add("file.export_svg", tr("Timeline and memory (&SVG) …"), ExportKind::Svg, tr("Vector pictures (*.svg)"), "svg");
  add("file.export_pdf", tr("Timeline and memory (P&DF) …"), ExportKind::Pdf, tr("Documents (*.pdf)"), "pdf");
  add("file.export_spans", tr("&Spans (CSV) …"), ExportKind::SpansCsv, tr("Tables (*.csv)"), "csv");
  add("file.export_stages", tr("S&tages (CSV) …"), ExportKind::StagesCsv, tr("Tables (*.csv)"), "csv");
  add("file.export_chrome", tr("&Chrome trace (for Perfetto) …"), ExportKind::ChromeTrace, tr("Traces (*.json)"), "json");
  menu->addSeparator();
  act(menu, "file.quit", tr("&Quit"), QKeySequence("Ctrl+Q"), [this] { close(); });
}

void MainWindow::make_edit_menu() {
  QMenu* menu = menuBar()->addMenu(tr("&Edit"));
  QAction* undo = undo_.createUndoAction(this, tr("Undo"));
  QAction* redo = undo_.createRedoAction(this, tr("Redo"));
  menu->addAction(keys_.add("edit.undo", undo, QKeySequence::Undo));
  menu->addAction(keys_.add("edit.redo", redo, QKeySequence("Ctrl+Shift+Z")));
  menu->addSeparator();
  act(menu, "edit.find", tr("&Find …"), QKeySequence::Find, [this] { open_find(); });
  act(menu, "edit.palette", tr("&Command palette …"), QKeySequence("Ctrl+K"), [this] { open_palette(); });
  menu->addSeparator();
  act(menu, "edit.keys", tr("&Keyboard shortcuts …"), {}, [this] {
    KeyDialog dialog(keys_, this);
    dialog.exec();
  });
}

void MainWindow::make_plan_menu() {
  QMenu* menu = menuBar()->addMenu(tr("&Plan"));
  act(menu, "plan.simulate", tr("&Simulate again"), QKeySequence("Ctrl+R"), [this] { simulate_now(); });
  act(menu, "plan.search", tr("Sea&rch strategies"), QKeySequence("Ctrl+Shift+R"), [this] {
    view("search");
    search_->start();
  });
  act(menu, "plan.run", tr("R&un on this machine"), QKeySequence("Ctrl+Shift+E"), [this] { view("run"); });
  act(menu, "plan.stop", tr("S&top"), QKeySequence("Ctrl+."), [this] { stop_all(); });
  menu->addSeparator();
  act(menu, "plan.baseline", tr("Use as &baseline (A)"), QKeySequence("Ctrl+D"), [this] {
    if (!document_) return;
    compared_ = document_;
    compared_choices_ = shown_choices_;
    update_compare();
    log(tr("Baseline (A): %1, %2.").arg(QString::fromStdString(document_->model), time_label()));
  });
  act(menu, "plan.no_baseline", tr("Clear base&line"), {}, [this] {
    compared_ = {};
    compared_choices_ = {};
    show_measured({});
  });
  menu->addSeparator();
  const std::pair<Granularity, QString> all[] = {{Granularity::Stage, tr("Detail: whole stages")},
                                                 {Granularity::Layer, tr("Detail: layers")},
                                                 {Granularity::Op, tr("Detail: single operations")}};
  for (const auto& [level, text] : all)
    choose(menu, QString("plan.detail_%1").arg(static_cast<int>(level)), text, level == granularity_, [this, level = level] {
      granularity_ = level;
      detail_took_.reset();
      simulate_now();
    });
}

void MainWindow::make_view_menu() {
  QMenu* menu = menuBar()->addMenu(tr("&View"));
  const std::tuple<const char*, QString, const char*> pages[] = {{"timeline", tr("&Timeline and memory"), "Alt+1"},
                                                                 {"topology", tr("T&opology"), "Alt+2"},
                                                                 {"compare", tr("&Compare"), "Alt+3"},
                                                                 {"table", tr("T&able"), "Alt+0"},
                                                                 {"strategy", tr("&Strategy"), "Alt+4"},
                                                                 {"inspector", tr("&Inspector"), "Alt+5"},
                                                                 {"search", tr("Sea&rch"), "Alt+6"},
                                                                 {"run", tr("R&un"), "Alt+7"},
                                                                 {"bookmarks", tr("&Bookmarks"), "Alt+8"},
                                                                 {"log", tr("&Log"), "Alt+9"}};
  for (const auto& [name, text, keys] : pages)
    act(menu, QString("view.%1").arg(name), text, QKeySequence(keys), [this, name = QString(name)] {
      if (QWidget* shown = view(name)) shown->setFocus(Qt::ShortcutFocusReason);
    });
  act(menu, "view.as_table", tr("Show as ta&ble"), QKeySequence("Ctrl+T"), [this] { show_table(); });
  menu->addSeparator();
  make_rows_menu(menu);
  make_memory_menu(menu);
  QMenu* themes = menu->addMenu(tr("T&heme"));
  const std::tuple<ThemeName, const char*, QString> names[] = {{ThemeName::Dark, "dark", tr("&Dark")},
                                                               {ThemeName::Light, "light", tr("&Light")},
                                                               {ThemeName::HighContrast, "contrast", tr("&High contrast")}};
  for (const auto& [name, id, text] : names)
    choose(themes, QString("view.theme_%1").arg(id), text, name == theme_.name, [this, name = name] { set_theme(name); });
  QMenu* languages = menu->addMenu(tr("L&anguage"));
  const std::pair<const char*, const char*> spoken[] = {{"en", "English"}, {"zh_CN", "简体中文"}};
  for (const auto& [code, name] : spoken) {
    const bool shown = can_show(code);
    const QString text = shown ? QString::fromUtf8(name) : tr("Chinese (needs a font, such as the package fonts-noto-cjk)");
    choose(languages, QString("view.language_%1").arg(code), text,
           (QString(code) == "zh_CN") == (QLocale().language() == QLocale::Chinese),
           [this, code = QString(code)] {
             settings_->setValue("language", code);
             save_session();
             close();
             QApplication::exit(kStartAgain);
           })
        ->setEnabled(shown);
  }
  menu->addSeparator();
  act(menu, "view.full_screen", tr("&Full screen"), QKeySequence("F11"),
      [this] { setWindowState(windowState() ^ Qt::WindowFullScreen); });
  act(menu, "view.next_pane", tr("Ne&xt pane"), QKeySequence("F6"), [this] { next_pane(); });
}

void MainWindow::make_rows_menu(QMenu* menu) {
  QMenu* rows = menu->addMenu(tr("&Rows of the timeline"));
  const std::tuple<Grouping, const char*, QString> groups[] = {
      {Grouping::Stage, "stage", tr("By pipeline &stage")},
      {Grouping::TensorParallel, "tp", tr("By &tensor-parallel group")},
      {Grouping::DataParallel, "dp", tr("By &data-parallel replica")},
      {Grouping::Node, "node", tr("By &node")}};
  for (const auto& [grouping, id, text] : groups)
    choose(rows, QString("view.rows_%1").arg(id), text, grouping == Grouping::Stage,
           [this, grouping = grouping] { timeline_->set_grouping(grouping); });
  make_shown_menu(menu);
  make_arrows_menu(menu);
  rows->addSeparator();
  act_in_timeline(rows, "view.pin", tr("&Pin the row"), QKeySequence("P"), &TimelineView::toggle_pin);
  act_in_timeline(rows, "view.unfold", tr("&Unfold the row"), QKeySequence("Space"), &TimelineView::toggle_open);
}

void MainWindow::make_memory_menu(QMenu* menu) {
  QMenu* spaces = menu->addMenu(tr("&Memory shown"));
  const std::tuple<Space, const char*, QString> kinds[] = {{Space::Device, "device", tr("&Device memory")},
                                                           {Space::PinnedHost, "pinned", tr("&Pinned host memory")},
                                                           {Space::PageableHost, "host", tr("Pageable &host memory")},
                                                           {Space::Nvme, "nvme", tr("N&VMe")}};
  for (const auto& [space, id, text] : kinds)
    choose(spaces, QString("view.memory_%1").arg(id), text, space == Space::Device, [this, space = space] {
      view("memory");
      memory_->set_space(space);
    });
}

// The legend without a mouse.
void MainWindow::make_shown_menu(QMenu* menu) {
  QMenu* shown = menu->addMenu(tr("&Show in timeline"));
  const std::vector<LegendEntry> entries = legend_entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    QAction* action = act(shown, QString("view.shown_%1").arg(i), entries[i].words, {},
                          [this, entry = entries[i]] { timeline_->set_hidden(toggled(timeline_->hidden(), entry)); });
    action->setCheckable(true);
    action->setChecked(true);
    connect(timeline_, &TimelineView::hidden_changed, action,
            [this, action, entry = entries[i]] { action->setChecked(!entry.hidden_by(timeline_->hidden())); });
  }
  act(shown, "view.shown_all", tr("&All"), {}, [this] { timeline_->set_hidden({}); });
}

void MainWindow::make_arrows_menu(QMenu* menu) {
  QMenu* arrows = menu->addMenu(tr("Ar&rows"));
  const std::tuple<Arrows, const char*, QString> kinds[] = {
      {Arrows::Direct, "direct", tr("To the &blocking operation")},
      {Arrows::Chain, "chain", tr("Along the blocking &chain")},
      {Arrows::Critical, "critical", tr("The critical &path of the run")}};
  for (const auto& [kind, id, text] : kinds)
    choose(arrows, QString("view.arrows_%1").arg(id), text, kind == timeline_->arrows(),
           [this, kind = kind] { timeline_->set_arrows(kind); });
}

// Keys without Ctrl belong to the timeline: elsewhere they are letters.
QAction* MainWindow::act_in_timeline(QMenu* menu, const QString& name, const QString& text, const QKeySequence& keys,
                                     void (TimelineView::*run)()) {
  QAction* action = act(menu, name, text, keys, std::bind_front(run, timeline_));
  action->setShortcutContext(Qt::WidgetShortcut);
  timeline_->addAction(action);
  return action;
}

void MainWindow::make_go_menu() {
  QMenu* menu = menuBar()->addMenu(tr("&Go"));
  act_in_timeline(menu, "go.fit", tr("Show &all"), QKeySequence("0"), &TimelineView::fit);
  act_in_timeline(menu, "go.focus", tr("Zoom to se&lection"), QKeySequence("F"), &TimelineView::focus_picked);
  act_in_timeline(menu, "go.selected", tr("Zoom to the &selected range"), QKeySequence("Z"), &TimelineView::zoom_to_selected);
  act_in_timeline(menu, "go.measure", tr("&Measure selection"), QKeySequence("M"), &TimelineView::measure);
  menu->addSeparator();
  act_in_timeline(menu, "go.next_bubble", tr("&Next bubble"), QKeySequence("]"), &TimelineView::next_bubble);
  act_in_timeline(menu, "go.previous_bubble", tr("&Previous bubble"), QKeySequence("["), &TimelineView::previous_bubble);
  act_in_timeline(menu, "go.worst_bubble", tr("Next &worst bubble"), QKeySequence("N"), &TimelineView::worst_bubble);
  act_in_timeline(menu, "go.next_op", tr("Next &operation"), QKeySequence("."), &TimelineView::next_op);
  act_in_timeline(menu, "go.previous_op", tr("P&revious operation"), QKeySequence(","), &TimelineView::previous_op);
  act_in_timeline(menu, "go.back", tr("Go to &blocking operation"), QKeySequence("Return"), &TimelineView::follow_back);
  act_in_timeline(menu, "go.return", tr("Go bac&k"), QKeySequence("Backspace"), &TimelineView::follow_return);
  act_in_timeline(menu, "go.closer", tr("Zoom &in"), QKeySequence("+"), &TimelineView::zoom_in);
  act_in_timeline(menu, "go.farther", tr("Zoom ou&t"), QKeySequence("-"), &TimelineView::zoom_out);
  act(menu, "go.divergence", tr("&First divergence"), QKeySequence("Ctrl+J"), [this] {
    view("compare");
    if (!compare_->jump_to_divergence())
      statusBar()->showMessage(tr("No divergence: the results are equal, or there is only one."));
  });
  menu->addSeparator();
  make_bookmark_actions(menu);
}

void MainWindow::make_bookmark_actions(QMenu* menu) {
  const auto here = [this] {
    const TimeRange seen = axis_.visible();
    const Nanoseconds middle{(seen.begin.value + seen.end.value) / 2};
    return axis_.selected().value_or(axis_.cursor() ? TimeRange{*axis_.cursor(), *axis_.cursor()} : TimeRange{middle, middle});
  };
  act(menu, "go.bookmark", tr("Book&mark here"), QKeySequence("Ctrl+B"), [this, here] {
    bookmarks_->add({.note = tr("bookmark %1").arg(bookmarks_->bookmarks().size() + 1).toStdString(), .range = here()});
    view("bookmarks");
    bookmarks_->edit_note();
  });
  QMenu* set = menu->addMenu(tr("Assign bookmark to &key"));
  QMenu* to = menu->addMenu(tr("Go &to a bookmark"));
  for (int digit = 1; digit <= 9; ++digit) {
    act(set, QString("go.set_%1").arg(digit), tr("Set bookmark %1").arg(digit), QKeySequence(QString("Ctrl+%1").arg(digit)),
        [this, here, digit] {
          bookmarks_->add({.note = tr("bookmark %1").arg(digit).toStdString(), .range = here(), .digit = digit});
        });
    QAction* go = act(to, QString("go.to_%1").arg(digit), tr("Go to bookmark %1").arg(digit),
                      QKeySequence(QString::number(digit)), [this, digit] {
                        if (const Bookmark* bookmark = bookmarks_->at_digit(digit)) go_to({}, bookmark->range);
                      });
    go->setShortcutContext(Qt::WidgetShortcut);
    timeline_->addAction(go);
  }
}

void MainWindow::make_help_menu() {
  QMenu* menu = menuBar()->addMenu(tr("&Help"));
  act(menu, "help.keys", tr("&Keyboard shortcuts"), QKeySequence("F1"), [this] { help_->open(help_groups(keys_), theme_); });
  act(menu, "help.tour", tr("&Tour in three steps"), {}, [this] { start_tour(); });
}

QString MainWindow::time_label() const { return document_ ? time_text(document_->summary.iteration_time.value) : QString(); }

// "Export > Report (HTML)".
static QString spelled_out(const QAction& action) {
  const QString title = action.property(kMenuTitle).toString();
  return title.isEmpty() ? plain_text(action) : title + " > " + plain_text(action);
}

void MainWindow::open_palette() {
  std::vector<PaletteEntry> entries;
  for (const KeyEntry& entry : keys_.entries())
    if (entry.action->isEnabled())
      entries.push_back({spelled_out(*entry.action), entry.action->shortcut().toString(QKeySequence::NativeText),
                         [action = entry.action] { action->trigger(); }});
  for (const QString& path : strategy_->option_names())
    entries.push_back({tr("Set %1").arg(option_label(path.toStdString())), tr("strategy"), [this, path] {
                         view("strategy");
                         strategy_->focus_option(path);
                       }});
  for (const std::string& name : names_["models"])
    entries.push_back({tr("Model %1").arg(QString::fromStdString(name)), {}, [this, name] {
                         set_choices(with_model(choices_, name), tr("Model"));
                       }});
  for (const std::string& name : names_["topologies"])
    entries.push_back({tr("Cluster %1").arg(QString::fromStdString(name)), {}, [this, name] {
                         Choices choices = choices_;
                         choices.cluster = name;
                         set_choices(choices, tr("Cluster"));
                       }});
  palette_->open(tr("What do you want to do?"), std::move(entries));
}

void MainWindow::open_find() {
  palette_->open_finding(tr("Find an operation, layer, rank, bubble, link …"), [this](const QString& query) {
    std::vector<PaletteEntry> entries;
    if (!document_) return entries;
    for (const FindHit& hit : find_hits(*document_, query.toStdString()))
      entries.push_back({QString::fromStdString(hit.text), QString::fromStdString(hit.aside), [this, hit] {
                           QWidget* const shown = view(hit.picked.kind == PickedKind::Link ? "topology" : "timeline");
                           go_to(hit.picked, hit.range);
                           shown->setFocus(Qt::OtherFocusReason);
                         }});
    return entries;
  });
}

// Brings a stretch into view with some room on both sides, unless it is there already.
void MainWindow::go_to(const Picked& picked, const TimeRange& range) {
  const TimeRange seen = axis_.visible();
  const bool inside = range.begin >= seen.begin && range.end <= seen.end;
  const std::int64_t length = range.length().value;
  if (!inside || length * 200 < seen.length().value) {
    const std::int64_t wide = std::max<std::int64_t>(length * 12, seen.length().value / 8);
    const std::int64_t middle = (range.begin.value + range.end.value) / 2;
    axis_.show({{middle - wide / 2}, {middle + wide / 2}});
  }
  if (picked.kind != PickedKind::Nothing) selection_.pick(picked);
}

void MainWindow::start_tour() {
  tour_->start({{tr("Change a setting"),
                 tr("This is GPT-3 with 175 billion parameters on 1024 A100 GPUs. Change any field: the estimate follows while "
                    "you type, the simulation a moment later. What is left at Auto is chosen for you."),
                 docks_["strategy"]},
                {tr("Read the bubbles"),
                 tr("Every row is a pipeline stage. Hatched stretches are GPUs that wait. Click one: the inspector names the "
                    "cause and lists changes that would shorten it, with simulated gains."),
                 docks_["inspector"]},
                {tr("Let it search"),
                 tr("The search tries every parallel strategy and plots time against memory. A click loads a strategy; "
                    "Ctrl+click compares it with the current one."),
                 docks_["search"]}});
}

}  // namespace foreshard
