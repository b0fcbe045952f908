// AutoSpinBox: a number that may be left empty for Auto. Any text can be typed; the arrows double and halve degrees and step
// other numbers by one.
#pragma once

#include <QAbstractSpinBox>

namespace foreshard {

class AutoSpinBox : public QAbstractSpinBox {
  Q_OBJECT
 public:
  enum class Steps { Powers, Ones, None };
  explicit AutoSpinBox(Steps steps, QWidget* parent = nullptr);

  QLineEdit* line() const { return lineEdit(); }
  void set_first(double value) { first_ = value; }  // where the arrows begin while it is empty
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
