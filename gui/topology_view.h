// TopologyView: nodes, switches and links; width is bandwidth, colour is utilisation in the visible stretch of time.
#pragma once

#include <QWidget>
#include <memory>

#include "gui/document.h"
#include "gui/selection.h"
#include "gui/theme.h"
#include "gui/time_axis.h"

namespace foreshard {

class TopologyView : public QWidget {
  Q_OBJECT

 public:
  TopologyView(TimeAxis& axis, Selection& selection, QWidget* parent = nullptr);  // both must outlive it

  void set_document(std::shared_ptr<const Document> document);  // null: empty
  void set_theme(const Theme& theme);

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  TimeAxis& axis_;
  Selection& selection_;
  std::shared_ptr<const Document> document_ = {};  // shared with the other views and their workers
  Theme theme_ = {};
};

}  // namespace foreshard
