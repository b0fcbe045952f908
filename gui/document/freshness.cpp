#include "gui/document/freshness.h"

#include <QEvent>
#include <QFrame>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <algorithm>

namespace foreshard {

static constexpr double kLeft = 0.45;     // of the picture's contrast, under the veil
static constexpr int kSpeaksAfter = 400;  // ms

FreshnessVeil::FreshnessVeil(QWidget* over) : QWidget(over) {
  setObjectName("freshness_veil");
  setAttribute(Qt::WA_TransparentForMouseEvents);
  setFocusPolicy(Qt::NoFocus);
  chip_ = new QFrame(over);
  chip_->setObjectName("freshness_chip");
  chip_->setAutoFillBackground(true);
  auto* row = new QHBoxLayout(chip_);
  row->setContentsMargins(14, 8, 10, 8);
  words_ = new QLabel;
  words_->setTextFormat(Qt::PlainText);
  words_->setWordWrap(true);
  act_ = new QPushButton;
  row->addWidget(words_, 1);
  row->addWidget(act_);
  connect(act_, &QPushButton::clicked, this, &FreshnessVeil::acted);
  late_.setSingleShot(true);
  late_.setInterval(kSpeaksAfter);
  connect(&late_, &QTimer::timeout, this, [this] {
    chip_->show();
    place();
  });
  over->installEventFilter(this);
  chip_->hide();
  hide();
}

void FreshnessVeil::set(Freshness freshness, const QString& text, const QString& action) {
  late_.stop();
  setVisible(freshness != Freshness::Current && dims_);
  words_->setText(text);
  chip_->setAccessibleName(text);
  act_->setText(action);
  act_->setVisible(!action.isEmpty());
  const bool speaks = freshness != Freshness::Current && !text.isEmpty();
  if (speaks && freshness == Freshness::Computing && !chip_->isVisible())
    late_.start();
  else
    chip_->setVisible(speaks);
  place();
}

void FreshnessVeil::leave_bright(QWidget* beside) {
  bright_ = beside;
  place();
}

void FreshnessVeil::set_dims(bool dims) {
  dims_ = dims;
  if (!dims) hide();
}

QString FreshnessVeil::text() const { return chip_->isVisibleTo(parentWidget()) ? words_->text() : QString(); }

void FreshnessVeil::place() {
  const QRect all = parentWidget()->rect();
  setGeometry(all);
  const int most = std::max(120, std::min(620, all.width() - 24));
  const int one_line = words_->fontMetrics().horizontalAdvance(words_->text()) + 8;
  const int beside = 14 + 10 + (act_->isHidden() ? 0 : act_->sizeHint().width() + 10);
  const int width = std::min(most, one_line + beside);
  const int height = std::max(words_->heightForWidth(width - beside), act_->isHidden() ? 0 : act_->sizeHint().height()) + 18;
  chip_->setGeometry((all.width() - width) / 2, all.height() / 4, width, height);
  raise();
  if (bright_ != nullptr) bright_->raise();
  chip_->raise();
}

void FreshnessVeil::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  QColor veil = palette().color(QPalette::Window);
  veil.setAlphaF(1 - kLeft);
  painter.fillRect(rect(), veil);
}

bool FreshnessVeil::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize || event->type() == QEvent::FontChange) place();
  return QWidget::eventFilter(watched, event);
}

}  // namespace foreshard
