#include "gui/widgets/auto_spin_box.h"

#include <QLineEdit>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

namespace foreshard {

AutoSpinBox::AutoSpinBox(Steps steps, QWidget* parent) : QAbstractSpinBox(parent), steps_(steps) {
  setFocusPolicy(Qt::StrongFocus);  // the wheel over a panel that scrolls changes nothing by accident
  setKeyboardTracking(true);
  if (steps == Steps::None) setButtonSymbols(QAbstractSpinBox::NoButtons);
}

void AutoSpinBox::stepBy(int steps) {
  bool known = false;
  const double typed = lineEdit()->text().trimmed().toDouble(&known);
  double value = known ? typed : first_;
  if (steps_ == Steps::Powers) {
    for (int i = 0; i < std::abs(steps); ++i) value = steps > 0 ? value * 2 : std::floor(value / 2);
    if (steps > 0 && value == 0) value = 1;
    value = std::max(1.0, value);
  } else {
    value = std::max(0.0, value + steps);
  }
  lineEdit()->setText(QString::number(static_cast<qint64>(value)));
  lineEdit()->selectAll();
}

QValidator::State AutoSpinBox::validate(QString&, int&) const { return QValidator::Acceptable; }

QAbstractSpinBox::StepEnabled AutoSpinBox::stepEnabled() const {
  return steps_ == Steps::None ? StepEnabled() : StepEnabled(StepUpEnabled | StepDownEnabled);
}

void AutoSpinBox::wheelEvent(QWheelEvent* event) {
  if (hasFocus())
    QAbstractSpinBox::wheelEvent(event);
  else
    event->ignore();
}

}  // namespace foreshard
