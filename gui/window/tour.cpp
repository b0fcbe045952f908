#include "gui/window/tour.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPushButton>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>

namespace foreshard {

Tour::Tour(QWidget* parent) : QFrame(parent) {
  setObjectName("tour_card");
  setAutoFillBackground(true);
  setFixedWidth(340);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(16, 14, 16, 12);
  count_ = new QLabel, title_ = new QLabel, text_ = new QLabel;
  count_->setObjectName("faint");
  title_->setObjectName("kpi_value");
  title_->setWordWrap(true);
  text_->setWordWrap(true);
  for (QLabel* label : {count_, title_, text_}) column->addWidget(label);
  auto* row = new QHBoxLayout;
  skip_ = new QPushButton(tr("Skip"));
  next_ = new QPushButton;
  next_->setDefault(true);
  row->addStretch(1);
  row->addWidget(skip_);
  row->addWidget(next_);
  column->addSpacing(6);
  column->addLayout(row);
  connect(skip_, &QPushButton::clicked, this, [this] { go_to(static_cast<int>(steps_.size())); });
  connect(next_, &QPushButton::clicked, this, [this] { go_to(at_ + 1); });
  parent->installEventFilter(this);
  hide();
}

void Tour::start(std::vector<TourStep> steps) {
  steps_ = std::move(steps);
  go_to(0);
}

void Tour::go_to(int step) {
  if (step >= static_cast<int>(steps_.size())) {
    hide();
    at_ = -1;
    Q_EMIT ended();
    return;
  }
  at_ = step;
  const TourStep& now = steps_[static_cast<std::size_t>(step)];
  count_->setText(tr("%1 of %2").arg(step + 1).arg(steps_.size()));
  title_->setText(now.title);
  text_->setText(now.text);
  next_->setText(step + 1 == static_cast<int>(steps_.size()) ? tr("Done") : tr("Next"));
  setAccessibleName(now.title);
  Q_EMIT step_shown(step);
  show();
  place();
  QTimer::singleShot(0, this, &Tour::place);  // a dock that was behind another has its place only then
  raise();
  next_->setFocus(Qt::OtherFocusReason);
}

// Places the card beside the explained widget, on a side with room, inside the window.
void Tour::place() {
  if (at_ < 0) return;
  adjustSize();
  const QWidget* part = steps_[static_cast<std::size_t>(at_)].beside;
  const QRect all = parentWidget()->rect();
  QPoint corner((all.width() - width()) / 2, (all.height() - height()) / 2);
  if (part != nullptr && part->isVisible()) {
    const QRect area(part->mapTo(parentWidget(), QPoint(0, 0)), part->size());
    const bool right = all.right() - area.right() >= width() + 24, left = area.left() >= width() + 24;
    corner.setX(right ? area.right() + 16 : left ? area.left() - width() - 16 : area.center().x() - width() / 2);
    corner.setY(right || left ? area.top() + 60 : area.center().y() - height() / 2);
  }
  corner.setX(std::clamp(corner.x(), 8, std::max(8, all.width() - width() - 8)));
  corner.setY(std::clamp(corner.y(), 8, std::max(8, all.height() - height() - 8)));
  move(corner);
}

bool Tour::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize && isVisible()) place();
  return QFrame::eventFilter(watched, event);
}

void Tour::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape)
    go_to(static_cast<int>(steps_.size()));
  else
    QFrame::keyPressEvent(event);
}

}  // namespace foreshard
