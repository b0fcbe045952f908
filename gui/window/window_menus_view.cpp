// WindowMenus: the menus for the views: what they show, and navigation in them.
#include <QLocale>
#include <QMenuBar>
#include <functional>

#include "gui/compare/compare_view.h"
#include "gui/document/bookmark_list.h"
#include "gui/memory/memory_view.h"
#include "gui/timeline/timeline_view.h"
#include "gui/widgets/language.h"
#include "gui/window/dock_panels.h"
#include "gui/window/main_window.h"
#include "gui/window/notices.h"
#include "gui/window/window_menus.h"

namespace foreshard {

void WindowMenus::make_view_menu() {
  QMenu* menu = window_.menuBar()->addMenu(tr("&View"));
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
      if (QWidget* shown = window_.view(name)) shown->setFocus(Qt::ShortcutFocusReason);
    });
  act(menu, "view.as_table", tr("Show as ta&ble"), QKeySequence("Ctrl+T"), [this] { parts_.views.show_table(); });
  menu->addSeparator();
  make_rows_menu(menu);
  make_memory_menu(menu);
  QMenu* themes = menu->addMenu(tr("T&heme"));
  const std::tuple<ThemeName, const char*, QString> names[] = {{ThemeName::Dark, "dark", tr("&Dark")},
                                                               {ThemeName::Light, "light", tr("&Light")},
                                                               {ThemeName::HighContrast, "contrast", tr("&High contrast")}};
  for (const auto& [name, id, text] : names)
    choose(themes, QString("view.theme_%1").arg(id), text, name == window_.theme().name,
           [this, name = name] { window_.set_theme(name); });
  QMenu* languages = menu->addMenu(tr("L&anguage"));
  const std::pair<const char*, const char*> spoken[] = {{"en", "English"}, {"zh_CN", "简体中文"}};
  for (const auto& [code, name] : spoken) {
    const bool shown = can_show(code);
    const QString text = shown ? QString::fromUtf8(name) : tr("Chinese (needs a font, such as the package fonts-noto-cjk)");
    choose(languages, QString("view.language_%1").arg(code), text,
           (QString(code) == "zh_CN") == (QLocale().language() == QLocale::Chinese),
           [this, code = QString(code)] { window_.start_again_in(code); })
        ->setEnabled(shown);
  }
  menu->addSeparator();
  act(menu, "view.full_screen", tr("&Full screen"), QKeySequence("F11"),
      [this] { window_.setWindowState(window_.windowState() ^ Qt::WindowFullScreen); });
  act(menu, "view.next_pane", tr("Ne&xt pane"), QKeySequence("F6"), [this] { window_.next_pane(); });
}

void WindowMenus::make_rows_menu(QMenu* menu) {
  QMenu* rows = menu->addMenu(tr("&Rows of the timeline"));
  const std::tuple<Grouping, const char*, QString> groups[] = {
      {Grouping::Stage, "stage", tr("By pipeline &stage")},
      {Grouping::TensorParallel, "tp", tr("By &tensor-parallel group")},
      {Grouping::DataParallel, "dp", tr("By &data-parallel replica")},
      {Grouping::Node, "node", tr("By &node")}};
  for (const auto& [grouping, id, text] : groups)
    choose(rows, QString("view.rows_%1").arg(id), text, grouping == Grouping::Stage,
           [this, grouping = grouping] { parts_.views.timeline()->set_grouping(grouping); });
  make_shown_menu(menu);
  make_arrows_menu(menu);
  rows->addSeparator();
  act_in_timeline(rows, "view.pin", tr("&Pin the row"), QKeySequence("P"), &TimelineView::toggle_pin);
  act_in_timeline(rows, "view.unfold", tr("&Unfold the row"), QKeySequence("Space"), &TimelineView::toggle_open);
}

void WindowMenus::make_memory_menu(QMenu* menu) {
  QMenu* spaces = menu->addMenu(tr("&Memory shown"));
  const std::tuple<Space, const char*, QString> kinds[] = {{Space::Device, "device", tr("&Device memory")},
                                                           {Space::PinnedHost, "pinned", tr("&Pinned host memory")},
                                                           {Space::PageableHost, "host", tr("Pageable &host memory")},
                                                           {Space::Nvme, "nvme", tr("N&VMe")}};
  for (const auto& [space, id, text] : kinds)
    choose(spaces, QString("view.memory_%1").arg(id), text, space == Space::Device, [this, space = space] {
      window_.view("memory");
      parts_.views.memory()->set_space(space);
    });
}

// The entries of the legend as menu actions, for use without a mouse.
void WindowMenus::make_shown_menu(QMenu* menu) {
  QMenu* shown = menu->addMenu(tr("&Show in timeline"));
  const std::vector<LegendEntry> entries = legend_entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    QAction* action = act(shown, QString("view.shown_%1").arg(i), entries[i].words, {}, [this, entry = entries[i]] {
      parts_.views.timeline()->set_hidden(toggled(parts_.views.timeline()->hidden(), entry));
    });
    action->setCheckable(true);
    action->setChecked(true);
    connect(parts_.views.timeline(), &TimelineView::hidden_changed, action,
            [this, action, entry = entries[i]] { action->setChecked(!entry.hidden_by(parts_.views.timeline()->hidden())); });
  }
  act(shown, "view.shown_all", tr("&All"), {}, [this] { parts_.views.timeline()->set_hidden({}); });
}

void WindowMenus::make_arrows_menu(QMenu* menu) {
  QMenu* arrows = menu->addMenu(tr("Ar&rows"));
  const std::tuple<Arrows, const char*, QString> kinds[] = {
      {Arrows::Direct, "direct", tr("To the &blocking operation")},
      {Arrows::Chain, "chain", tr("Along the blocking &chain")},
      {Arrows::Critical, "critical", tr("The critical &path of the run")}};
  for (const auto& [kind, id, text] : kinds)
    choose(arrows, QString("view.arrows_%1").arg(id), text, kind == parts_.views.timeline()->arrows(),
           [this, kind = kind] { parts_.views.timeline()->set_arrows(kind); });
}

// Keys without Ctrl belong to the timeline: elsewhere they are letters.
QAction* WindowMenus::act_in_timeline(QMenu* menu, const QString& name, const QString& text, const QKeySequence& keys,
                                      void (TimelineView::*run)()) {
  QAction* action = act(menu, name, text, keys, std::bind_front(run, parts_.views.timeline()));
  action->setShortcutContext(Qt::WidgetShortcut);
  parts_.views.timeline()->addAction(action);
  return action;
}

void WindowMenus::make_go_menu() {
  QMenu* menu = window_.menuBar()->addMenu(tr("&Go"));
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
    window_.view("compare");
    if (!parts_.views.compare()->jump_to_divergence())
      parts_.notices.show_status(tr("No divergence: the results are equal, or there is only one."));
  });
  menu->addSeparator();
  make_bookmark_actions(menu);
}

void WindowMenus::make_bookmark_actions(QMenu* menu) {
  act(menu, "go.bookmark", tr("Book&mark here"), QKeySequence("Ctrl+B"), [this] {
    parts_.docks.bookmarks()->add(
        {.note = tr("bookmark %1").arg(parts_.docks.bookmarks()->bookmarks().size() + 1).toStdString(),
         .range = parts_.views.here()});
    window_.view("bookmarks");
    parts_.docks.bookmarks()->edit_note();
  });
  QMenu* set = menu->addMenu(tr("Assign bookmark to &key"));
  QMenu* to = menu->addMenu(tr("Go &to a bookmark"));
  for (int digit = 1; digit <= 9; ++digit) {
    act(set, QString("go.set_%1").arg(digit), tr("Set bookmark %1").arg(digit), QKeySequence(QString("Ctrl+%1").arg(digit)),
        [this, digit] {
          parts_.docks.bookmarks()->add(
              {.note = tr("bookmark %1").arg(digit).toStdString(), .range = parts_.views.here(), .digit = digit});
        });
    QAction* go = act(to, QString("go.to_%1").arg(digit), tr("Go to bookmark %1").arg(digit),
                      QKeySequence(QString::number(digit)), [this, digit] {
                        if (const Bookmark* bookmark = parts_.docks.bookmarks()->at_digit(digit))
                          parts_.views.go_to({}, bookmark->range);
                      });
    go->setShortcutContext(Qt::WidgetShortcut);
    parts_.views.timeline()->addAction(go);
  }
}

}  // namespace foreshard
