// DockPanels: the panels around the views: the strategy on the left; the inspector, search, run, bookmarks and log as tabs on the right.
// A narrow window has rails of buttons at its edges instead, and shows at most one panel per side.
#pragma once

#include <QObject>
#include <map>
#include <memory>
#include <vector>

#include "gui/document/freshness.h"
#include "gui/widgets/theme.h"

class QDockWidget;
class QMainWindow;
class QPlainTextEdit;

namespace foreshard {

class BookmarkList;
class DockRail;
class InspectorView;
class PlanViews;
class RunPanel;
class SearchPanel;
class StrategyPanel;
class SuggestionList;
struct Document;
struct Twin;

class DockPanels : public QObject {
  Q_OBJECT
 public:
  // `views`: the panels use its time axis and selection; it must outlive them. `log`: becomes the last panel. `program`: path of
  // foreshard.
  DockPanels(QMainWindow& window, PlanViews& views, QPlainTextEdit* log, const QString& program);

  StrategyPanel* strategy() const { return strategy_; }
  SearchPanel* search() const { return search_; }
  RunPanel* run() const { return run_; }
  BookmarkList* bookmarks() const { return bookmarks_; }
  SuggestionList* suggestions() const { return suggestions_; }

  void set_document(const std::shared_ptr<const Document>& document);
  void set_twin(const std::shared_ptr<const Twin>& twin);
  void set_theme(const Theme& theme);
  void set_freshness(Freshness freshness);
  bool busy() const;  // a search, a run or a suggestion is under way
  void stop();

  QDockWidget* dock(
      const QString& name) const;       // "strategy", "inspector", "search", "run", "bookmarks", "log"; null: none such
  QWidget* bring(const QString& name);  // opens the dock in front and returns its panel; null: none such
  std::vector<QDockWidget*> on_the_right() const;

  bool narrow() const { return narrow_; }
  void set_narrow(bool narrow);
  QByteArray layout() const;  // Qt's state of the docks in the wide window; a narrow one has none
  void set_layout(const QByteArray& layout);

 private:
  QDockWidget* add(const QString& name, const QString& title, QWidget* widget, Qt::DockWidgetArea area);
  void make_docks(QWidget* inspector, QPlainTextEdit* log);
  void make_rails();
  void open(QDockWidget* dock);

  QMainWindow& window_;
  StrategyPanel* strategy_ = nullptr;
  SearchPanel* search_ = nullptr;
  RunPanel* run_ = nullptr;
  BookmarkList* bookmarks_ = nullptr;
  InspectorView* inspector_ = nullptr;
  SuggestionList* suggestions_ = nullptr;
  FreshnessVeil* inspector_veil_ = nullptr;
  std::map<QString, QDockWidget*> docks_;
  DockRail* rail_left_ = nullptr;
  DockRail* rail_right_ = nullptr;
  bool narrow_ = false;
  QByteArray wide_layout_ = {};
};

}  // namespace foreshard
