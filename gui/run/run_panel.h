// RunPanel: trains the shown plan for real on this machine with `foreshard run`; progress and loss live, then its measured
// result beside the prediction.
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

  void set_document(std::shared_ptr<const Document> document);  // whose plan is run; null: none
  void set_current(bool current);  // false: the shown plan is not that of the fields, and is not run
  void set_theme(const Theme& theme);
  void start();
  void stop();
  bool busy() const { return child_.running(); }

 Q_SIGNALS:
  void measured(std::shared_ptr<const foreshard::Document> measured);
  void example_asked();  // a plan that is small enough
  void said(const QString& message);

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

// Why a plan cannot be run on this machine; empty: it can. Every rank is a thread and holds its own memory.
QString why_not_run(const Plan& plan);

}  // namespace foreshard
