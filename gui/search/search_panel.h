// SearchPanel: runs `foreshard search` on the chosen model and cluster, and adds the strategies it finds to a scatter plot and a table
// while it runs. A click loads a strategy; with Ctrl it is compared with the shown one.
#pragma once

#include <QElapsedTimer>
#include <QWidget>

#include "gui/document/choices.h"
#include "gui/document/search_rows.h"
#include "gui/run/child.h"
#include "gui/widgets/theme.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;
class QSortFilterProxyModel;
class QSpinBox;
class QTableView;

namespace foreshard {

class ParetoView;

class SearchPanel : public QWidget {
  Q_OBJECT
 public:
  explicit SearchPanel(const QString& program, QWidget* parent = nullptr);

  void set_choices(const Choices& choices) { choices_ = choices; }  // the next search starts from them
  void set_theme(const Theme& theme);
  void set_refined(int count);  // how many of the best strategies are simulated
  void start();
  void stop();
  bool busy() const { return child_.running(); }
  const SearchRows& rows() const { return rows_; }
  QTableView* table() const { return table_; }

 Q_SIGNALS:
  void load_asked(const foreshard::Choices& choices);
  void compare_asked(const foreshard::Choices& choices);
  void finished();
  void said(const QString& message);    // for the log
  void failed(const QString& message);  // the search ended without a result

 private:
  QWidget* make_controls();
  void make_table();
  void take_line(const QByteArray& json);
  void take_end(const ChildOutcome& outcome);
  void pick(int row, bool compare);
  void show_state(const QString& text);
  QString best_so_far() const;

  Child child_;
  Choices choices_, searched_;
  SearchRows rows_;
  QSortFilterProxyModel* sorted_ = nullptr;
  QComboBox* objective_ = nullptr;
  QCheckBox* keep_ = nullptr;
  QSpinBox* refine_ = nullptr;
  QPushButton* go_ = nullptr;
  QProgressBar* bar_ = nullptr;
  QLabel* state_ = nullptr;
  QLineEdit* filter_ = nullptr;
  ParetoView* scatter_ = nullptr;
  QTableView* table_ = nullptr;
  QElapsedTimer clock_;
};

}  // namespace foreshard
