#include "gui/window/window_menus.h"

#include <QActionGroup>
#include <QMenuBar>
#include <functional>

#include "gui/compare/policy_view.h"
#include "gui/document/find_hits.h"
#include "gui/search/search_panel.h"
#include "gui/strategy/option_field.h"
#include "gui/strategy/program_lists.h"
#include "gui/strategy/strategy_panel.h"
#include "gui/window/dock_panels.h"
#include "gui/window/help_overlay.h"
#include "gui/window/key_dialog.h"
#include "gui/window/main_window.h"
#include "gui/window/palette_box.h"

namespace foreshard {

static const char* const kMenuTitle = "menu title";  // a property of actions

WindowMenus::WindowMenus(MainWindow& window, KeyMap& keys, const WindowParts& parts)
    : window_(window), keys_(keys), parts_(parts) {
  make_file_menu();
  make_edit_menu();
  make_plan_menu();
  make_view_menu();
  make_go_menu();
  make_help_menu();
  connect(&parts_.files, &WindowFiles::restored, this, [this] {
    const int level = static_cast<int>(parts_.chosen.granularity());
    if (QAction* action = keys_.action(QString("plan.detail_%1").arg(level))) action->setChecked(true);
  });
}

QAction* WindowMenus::act(QMenu* menu, const QString& name, const QString& text, const QKeySequence& keys,
                          std::function<void()> run) {
  auto* action = new QAction(text, &window_);
  connect(action, &QAction::triggered, this, [run = std::move(run)] { run(); });
  menu->addAction(keys_.add(name, action, keys));
  const auto* above = qobject_cast<const QMenu*>(menu->parentWidget());  // a menu in a menu: its title says what the words mean
  action->setProperty(kMenuTitle, above == nullptr ? QString() : plain_text(*menu->menuAction()));
  return action;
}

// Adds one of several exclusive actions; the menu marks the chosen one. The first one in a menu creates the group, later ones join it.
QAction* WindowMenus::choose(QMenu* menu, const QString& name, const QString& text, bool chosen, std::function<void()> run) {
  auto* group = menu->findChild<QActionGroup*>(QString(), Qt::FindDirectChildrenOnly);
  if (group == nullptr) group = new QActionGroup(menu);
  QAction* action = act(menu, name, text, {}, std::move(run));
  action->setCheckable(true);
  action->setChecked(chosen);
  group->addAction(action);
  return action;
}

void WindowMenus::make_file_menu() {
  QMenu* menu = window_.menuBar()->addMenu(tr("&File"));
  act(menu, "file.open", tr("&Open …"), QKeySequence::Open, [this] { parts_.files.open_dialog(); });
  QMenu* recent = menu->addMenu(tr("Open &recent"));
  connect(recent, &QMenu::aboutToShow, this, [this, recent] { parts_.files.fill_recent(*recent); });
  act(menu, "file.save", tr("&Save workspace"), QKeySequence::Save, [this] { parts_.files.save(); });
  act(menu, "file.save_as", tr("Save workspace &as …"), QKeySequence("Ctrl+Shift+S"), [this] { parts_.files.save_as(); });
  act(menu, "file.example", tr("Open &example: GPT-3 175B"), {},
      [this] { parts_.chosen.set_choices(worked_example(), tr("Open the example")); });
  menu->addSeparator();
  QMenu* out = menu->addMenu(tr("&Export"));
  const auto add = [&](const char* name, const QString& text, ExportKind kind, const QString& filter, const QString& suffix) {
    act(out, name, text, {}, [this, kind, filter, suffix] { parts_.files.export_dialog(kind, filter, suffix); });
  };
  add("file.export_html", tr("&Report (HTML) …"), ExportKind::Html, tr("Reports (*.html)"), "html");
  add("file.export_png", tr("Picture of the window (&PNG) …"), ExportKind::Png, tr("Pictures (*.png)"), "png");
  add("file.export_svg", tr("Timeline and memory (&SVG) …"), ExportKind::Svg, tr("Vector pictures (*.svg)"), "svg");
  add("file.export_pdf", tr("Timeline and memory (P&DF) …"), ExportKind::Pdf, tr("Documents (*.pdf)"), "pdf");
  add("file.export_spans", tr("&Spans (CSV) …"), ExportKind::SpansCsv, tr("Tables (*.csv)"), "csv");
  add("file.export_stages", tr("S&tages (CSV) …"), ExportKind::StagesCsv, tr("Tables (*.csv)"), "csv");
  add("file.export_chrome", tr("&Chrome trace (for Perfetto) …"), ExportKind::ChromeTrace, tr("Traces (*.json)"), "json");
  menu->addSeparator();
  act(menu, "file.quit", tr("&Quit"), QKeySequence("Ctrl+Q"), [this] { window_.close(); });
}

void WindowMenus::make_edit_menu() {
  QMenu* menu = window_.menuBar()->addMenu(tr("&Edit"));
  QAction* undo = parts_.chosen.undo_stack().createUndoAction(&window_, tr("Undo"));
  QAction* redo = parts_.chosen.undo_stack().createRedoAction(&window_, tr("Redo"));
  menu->addAction(keys_.add("edit.undo", undo, QKeySequence::Undo));
  menu->addAction(keys_.add("edit.redo", redo, QKeySequence("Ctrl+Shift+Z")));
  menu->addSeparator();
  act(menu, "edit.find", tr("&Find …"), QKeySequence::Find, [this] { open_find(); });
  act(menu, "edit.palette", tr("&Command palette …"), QKeySequence("Ctrl+K"), [this] { open_palette(); });
  menu->addSeparator();
  act(menu, "edit.keys", tr("&Keyboard shortcuts …"), {}, [this] {
    KeyDialog dialog(keys_, &window_);
    dialog.exec();
  });
}

void WindowMenus::make_plan_menu() {
  QMenu* menu = window_.menuBar()->addMenu(tr("&Plan"));
  act(menu, "plan.simulate", tr("&Simulate again"), QKeySequence("Ctrl+R"), [this] { parts_.chosen.simulate_now(); });
  act(menu, "plan.search", tr("Sea&rch strategies"), QKeySequence("Ctrl+Shift+R"), [this] {
    window_.view("search");
    parts_.docks.search()->start();
  });
  act(menu, "plan.run", tr("R&un on this machine"), QKeySequence("Ctrl+Shift+E"), [this] { window_.view("run"); });
  act(menu, "plan.stop", tr("S&top"), QKeySequence("Ctrl+."), [this] { parts_.chosen.stop(); });
  menu->addSeparator();
  act(menu, "plan.baseline", tr("Use as &baseline (A)"), QKeySequence("Ctrl+D"), [this] { parts_.shown.use_as_baseline(); });
  act(menu, "plan.no_baseline", tr("Clear base&line"), {}, [this] { parts_.shown.clear_baseline(); });
  act(menu, "plan.policies", tr("Compare runtime &policies"), QKeySequence("Ctrl+Shift+P"), [this] {
    parts_.views.show_policies();
    parts_.views.policies()->start();
  });
  menu->addSeparator();
  const std::pair<Granularity, QString> all[] = {{Granularity::Stage, tr("Detail: whole stages")},
                                                 {Granularity::Layer, tr("Detail: layers")},
                                                 {Granularity::Op, tr("Detail: single operations")}};
  for (const auto& [level, text] : all)
    choose(menu, QString("plan.detail_%1").arg(static_cast<int>(level)), text, level == parts_.chosen.granularity(),
           [this, level = level] { parts_.chosen.simulate_in(level); });
}

void WindowMenus::make_help_menu() {
  QMenu* menu = window_.menuBar()->addMenu(tr("&Help"));
  act(menu, "help.keys", tr("&Keyboard shortcuts"), QKeySequence("F1"),
      [this] { window_.help_overlay()->open(help_groups(keys_), window_.theme()); });
  act(menu, "help.tour", tr("&Tour in three steps"), {}, [this] { window_.start_tour(); });
}

// "Export > Report (HTML)".
static QString spelled_out(const QAction& action) {
  const QString title = action.property(kMenuTitle).toString();
  return title.isEmpty() ? plain_text(action) : title + " > " + plain_text(action);
}

void WindowMenus::open_palette() {
  std::vector<PaletteEntry> entries;
  for (const KeyEntry& entry : keys_.entries())
    if (entry.action->isEnabled())
      entries.push_back({spelled_out(*entry.action), entry.action->shortcut().toString(QKeySequence::NativeText),
                         [action = entry.action] { action->trigger(); }});
  for (const QString& path : parts_.docks.strategy()->option_names())
    entries.push_back({tr("Set %1").arg(option_label(path.toStdString())), tr("strategy"), [this, path] {
                         window_.view("strategy");
                         parts_.docks.strategy()->focus_option(path);
                       }});
  for (const std::string& name : parts_.lists.models())
    entries.push_back({tr("Model %1").arg(QString::fromStdString(name)), {}, [this, name] {
                         parts_.chosen.set_choices(with_model(parts_.chosen.choices(), name), tr("Model"));
                       }});
  for (const std::string& name : parts_.lists.topologies())
    entries.push_back({tr("Cluster %1").arg(QString::fromStdString(name)), {}, [this, name] {
                         Choices choices = parts_.chosen.choices();
                         choices.cluster = name;
                         parts_.chosen.set_choices(choices, tr("Cluster"));
                       }});
  window_.palette_box()->open(tr("What do you want to do?"), std::move(entries));
}

void WindowMenus::open_find() {
  window_.palette_box()->open_finding(tr("Find an operation, layer, rank, bubble, link …"), [this](const QString& query) {
    std::vector<PaletteEntry> entries;
    if (!parts_.shown.document()) return entries;
    for (const FindHit& hit : find_hits(*parts_.shown.document(), query.toStdString()))
      entries.push_back({QString::fromStdString(hit.text), QString::fromStdString(hit.aside), [this, hit] {
                           QWidget* const shown = window_.view(hit.picked.kind == PickedKind::Link ? "topology" : "timeline");
                           parts_.views.go_to(hit.picked, hit.range);
                           shown->setFocus(Qt::OtherFocusReason);
                         }});
    return entries;
  });
}

}  // namespace foreshard
