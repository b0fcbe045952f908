// Screenshot: --screenshot and --export. Makes a picture of the window, or an export, without a user: brings the view into a state worth
// showing, waits until no computation is under way, and saves.
#pragma once

#include <QObject>
#include <QString>
#include <optional>

#include "gui/window/main_window.h"

namespace foreshard {

struct ShotRequest {
  QString file = {};                    // PNG
  QString view = "window";              // window, timeline, memory, topology, search, compare, inspector
  int width = 1600, height = 1000;      // of the window, pixels
  std::optional<ExportKind> kind = {};  // write this export instead of a picture
};
const QStringList& shot_views();  // the values that ShotRequest::view can have

class Screenshot : public QObject {
  Q_OBJECT
 public:
  Screenshot(MainWindow& window, ShotRequest request);  // the window must outlive it

 Q_SIGNALS:
  void done(const QString& problem);  // empty: the file is saved

 private:
  void prepare();
  void shoot();
  MainWindow& window_;
  ShotRequest request_;
  bool prepared_ = false;
};

}  // namespace foreshard
