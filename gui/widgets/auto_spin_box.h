// AutoSpinBox: an editor for a number; empty means Auto. It accepts any text. The arrows step by a factor of 2 (Powers), by 1 (Ones), or
// are disabled (None).
#pragma once

#include <QAbstractSpinBox>

namespace foreshard {

class AutoSpinBox : public QAbstractSpinBox {
  Q_OBJECT
 public:
  enum class Steps { Powers, Ones, None };
  explicit AutoSpinBox(Steps steps, QWidget* parent = nullptr);

  QLineEdit* line() const { return lineEdit(); }
  void set_first(double value) { first_ = value; }  // the value that an arrow sets while the editor is empty
  void stepBy(int steps) override;
  QValidator::State validate(QString& text, int& position) const override;
  void fixup(QString&) const override {}

 protected:
  StepEnabled stepEnabled() const override;
  void wheelEvent(QWheelEvent* event) override;

 private:
  Steps steps_;
  double first_ = 1;
};

}  // namespace foreshard
