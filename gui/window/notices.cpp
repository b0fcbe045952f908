#include "gui/window/notices.h"

#include <QPlainTextEdit>
#include <QProgressBar>
#include <QStatusBar>
#include <QTime>

namespace foreshard {

static constexpr int kSteps = 1000;     // of the progress
static constexpr int kLogLines = 2000;  // older ones go

Notices::Notices(Banner& banner, QStatusBar& status) : banner_(banner), status_(status) {
  progress_ = new QProgressBar;
  progress_->setRange(0, kSteps);
  progress_->setFixedSize(140, 6);
  progress_->setTextVisible(false);
  progress_->setAccessibleName(tr("Progress of the simulation"));
  progress_->hide();
  status_.addPermanentWidget(progress_);
  log_ = new QPlainTextEdit;
  log_->setReadOnly(true);
  log_->setMaximumBlockCount(kLogLines);
  log_->setAccessibleName(tr("Log"));
}

void Notices::tell(About about, const QString& message, const QString& remedy, std::function<void()> run) {
  banner_.say(about, message, remedy, std::move(run));
  if (!message.isEmpty()) log(message);
}

void Notices::went_well(About about) { banner_.went_well(about); }

void Notices::log(const QString& line) { log_->appendPlainText(QTime::currentTime().toString("HH:mm:ss  ") + line); }

void Notices::show_status(const QString& words) { status_.showMessage(words); }

void Notices::show_progress(double fraction) {
  progress_->show();
  progress_->setValue(static_cast<int>(fraction * kSteps));
}

void Notices::hide_progress() { progress_->hide(); }

QString Notices::message() const { return banner_.isVisibleTo(banner_.window()) ? banner_.text() : QString(); }

bool Notices::tells_about(About about) const { return banner_.isVisibleTo(banner_.window()) && banner_.about() == about; }

}  // namespace foreshard
