// --screenshot and --export: a picture of the window, or a file, without a person: opens what it is told, brings a view into a
// telling state, waits until nothing is under way, saves and ends.
#pragma once

#include <QObject>
#include <QString>
#include <optional>

#include "gui/window/main_window.h"

namespace foreshard {

struct ShotRequest {
  QString file = {};        // PNG
  QString view = "window";  // window, timeline, memory, topology, search, compare, inspector
  int width = 1600, height = 1000;
  std::optional<ExportKind> kind = {};  // an export in place of a picture
};
const QStringList& shot_views();

class Screenshot : public QObject {
  Q_OBJECT
 public:
  Screenshot(MainWindow& window, ShotRequest request);  // the window must outlive it

 Q_SIGNALS:
  void done(const QString& problem);  // empty: saved

 private:
  void prepare();
  void shoot();
  MainWindow& window_;
  ShotRequest request_;
  bool prepared_ = false;
};

}  // namespace foreshard
