#include "gui/widgets/banner.h"

#include "gui/widgets/engine_words.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QToolButton>

namespace foreshard {

Banner::Banner(QWidget* over) : QFrame(over) {
  setObjectName("banner");
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(12, 6, 6, 6);
  text_ = new QLabel;
  text_->setWordWrap(true);
  text_->setTextFormat(Qt::PlainText);
  text_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  remedy_ = new QPushButton;
  auto* close = new QToolButton;
  close->setText("×");
  close->setAutoRaise(true);
  close->setAccessibleName(tr("Close the message"));
  row->addWidget(text_, 1);
  row->addWidget(remedy_);
  row->addWidget(close);
  connect(close, &QToolButton::clicked, this, &QWidget::hide);
  connect(remedy_, &QPushButton::clicked, this, [this] {
    hide();
    if (act_) act_();
  });
  over->installEventFilter(this);
  hide();
}

void Banner::place() {
  const QRect all = parentWidget()->rect();
  const int height = layout()->hasHeightForWidth() ? layout()->heightForWidth(all.width()) : sizeHint().height();
  setGeometry(0, all.height() - height, all.width(), height);
  raise();
}

bool Banner::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize || event->type() == QEvent::FontChange) place();
  return QFrame::eventFilter(watched, event);
}

void Banner::say(About about, const QString& text, const QString& remedy, std::function<void()> act) {
  about_ = about;
  text_->setText(engine_words(text));
  setAccessibleName(text_->text());
  act_ = std::move(act);
  remedy_->setText(remedy);
  remedy_->setVisible(!remedy.isEmpty());
  setVisible(!text.isEmpty());
  place();
}

void Banner::went_well(About about) {
  if (about == about_) hide();
}

QString Banner::text() const { return text_->text(); }

}  // namespace foreshard
