#include "gui/widgets/banner.h"

#include "gui/widgets/engine_words.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QToolButton>

namespace foreshard {

Banner::Banner(QWidget* parent) : QFrame(parent) {
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
  hide();
}

void Banner::say(About about, const QString& text, const QString& remedy, std::function<void()> act) {
  about_ = about;
  text_->setText(engine_words(text));
  setAccessibleName(text_->text());
  act_ = std::move(act);
  remedy_->setText(remedy);
  remedy_->setVisible(!remedy.isEmpty());
  setVisible(!text.isEmpty());
}

void Banner::went_well(About about) {
  if (about == about_) hide();
}

QString Banner::text() const { return text_->text(); }

}  // namespace foreshard
