// Notices: where the window says what has happened: the banner over the views, the log, the status bar and its progress.
#pragma once

#include <QObject>
#include <functional>

#include "gui/widgets/banner.h"

class QPlainTextEdit;
class QProgressBar;
class QStatusBar;

namespace foreshard {

class Notices : public QObject {
  Q_OBJECT
 public:
  Notices(Banner& banner, QStatusBar& status);  // both must outlive it

  void tell(About about, const QString& message, const QString& remedy = {}, std::function<void()> run = {});  // and logs it
  void went_well(About about);  // its message goes
  void log(const QString& line);
  void show_status(const QString& words);  // in the status bar
  void show_progress(double fraction);
  void hide_progress();

  QString message() const;              // of the banner; empty: it is not there
  bool tells_about(About about) const;  // the banner is there and speaks of it
  QPlainTextEdit* log_view() const { return log_; }

 private:
  Banner& banner_;
  QStatusBar& status_;
  QPlainTextEdit* log_ = nullptr;
  QProgressBar* progress_ = nullptr;
};

}  // namespace foreshard
