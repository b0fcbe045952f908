// RunPanel: executes the shown plan on this machine with `foreshard run`. It shows progress and loss while the run goes on; at the end its
// measured result is shown beside the prediction.
#pragma once

#include <QTemporaryDir>
#include <QWidget>
#include <memory>
#include <vector>

#include "gui/document/document.h"
#include "gui/run/child.h"
#include "gui/widgets/theme.h"

class QComboBox;
class QLabel;
class QProgressBar;
class QPushButton;
class QSpinBox;

namespace foreshard {

class LossCurve;

class RunPanel : public QWidget {
  Q_OBJECT
 public:
  explicit RunPanel(const QString& program, QWidget* parent = nullptr);

  void set_document(std::shared_ptr<const Document> document);  // the plan to run; null: none
  void set_current(bool current);  // false: the shown plan is not that of the choices; start does nothing
  void set_theme(const Theme& theme);
  void start();
  void stop();
  bool busy() const { return child_.running(); }

 Q_SIGNALS:
  void measured(std::shared_ptr<const foreshard::Document> measured);  // the result of a run
  void example_asked();                                                // the user asked for a plan that is small enough to run
  void said(const QString& message);                                   // for the log

 private:
  void take_line(const QByteArray& json);
  void take_end(const ChildOutcome& outcome);
  void load(const QString& file);
  void take_measured(const std::shared_ptr<const Document>& measurement);
  void show_reason();

  Child child_;
  QTemporaryDir folder_;
  std::shared_ptr<const Document> document_ = {};  // shared with the views
  QComboBox* device_ = nullptr;
  QComboBox* clock_mode_ = nullptr;
  QSpinBox* steps_ = nullptr;
  QPushButton* go_ = nullptr;
  QPushButton* example_ = nullptr;
  QProgressBar* bar_ = nullptr;
  QLabel* state_ = nullptr;
  QLabel* result_ = nullptr;
  LossCurve* curve_ = nullptr;
  int runs_ = 0;
  bool current_ = true;
};

// Why the plan cannot be run on this machine; empty: it can. Every rank runs as a thread and has its own memory.
QString why_not_run(const Plan& plan);

}  // namespace foreshard
