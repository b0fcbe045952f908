// Notices: the places where the window reports events: the banner over the views, the log, the status bar and its progress bar.
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

  // Shows the message in the banner (see Banner::say) and logs it.
  void tell(About about, const QString& message, const QString& remedy = {}, std::function<void()> run = {});
  void went_well(About about);  // hides a message about this
  void log(const QString& line);
  void show_status(const QString& words);  // in the status bar
  void show_progress(double fraction);     // 0..1
  void hide_progress();

  QString message() const;              // of the banner; empty: it is hidden
  bool tells_about(About about) const;  // the banner is visible and its message is about this
  QPlainTextEdit* log_view() const { return log_; }

 private:
  Banner& banner_;
  QStatusBar& status_;
  QPlainTextEdit* log_ = nullptr;
  QProgressBar* progress_ = nullptr;
};

}  // namespace foreshard
