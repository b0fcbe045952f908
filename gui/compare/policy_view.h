// PolicyView: simulates the chosen job under every runtime policy with `foreshard simulate --policy all`, and shows them as one table. A
// click loads a policy; with Ctrl it is compared with the shown plan.
#pragma once

#include <QWidget>

#include "gui/compare/policy_rows.h"
#include "gui/document/choices.h"
#include "gui/run/child.h"
#include "gui/widgets/theme.h"

class QLabel;
class QPushButton;
class QSortFilterProxyModel;
class QTableView;

namespace foreshard {

class PolicyView : public QWidget {
  Q_OBJECT
 public:
  explicit PolicyView(const QString& program, QWidget* parent = nullptr);

  void set_choices(const Choices& choices);  // the job of the next start
  void set_theme(const Theme& theme);
  void start();
  void stop();
  bool busy() const { return child_.running(); }
  const PolicyRows& rows() const { return rows_; }
  QTableView* table() const { return table_; }

 Q_SIGNALS:
  void load_asked(const foreshard::Choices& choices);
  void compare_asked(const foreshard::Choices& choices);
  void began();
  void said(const QString& message);  // for the log: an answer that cannot be read, or none

 private:
  void make_table();
  void take_end(const ChildOutcome& outcome);
  void pick(int row, bool compare);
  void span_refusals();

  Child child_;
  Choices choices_, simulated_;
  PolicyRows rows_;
  QSortFilterProxyModel* sorted_ = nullptr;
  QPushButton* go_ = nullptr;
  QLabel* state_ = nullptr;
  QTableView* table_ = nullptr;
  Theme theme_ = {};
};

// `choices` under the policy `name`: its ZeRO stage is that of the policy.
Choices with_policy(Choices choices, const std::string& name);

}  // namespace foreshard
