// TimelineView: lanes of every class of ranks over time, with their bubbles, the binding chain of what is picked and, with a
// measured twin, both.
#pragma once

#include <QWidget>
#include <memory>

#include "gui/document.h"
#include "gui/selection.h"
#include "gui/theme.h"
#include "gui/time_axis.h"

namespace foreshard {

class TimelineView : public QWidget {
  Q_OBJECT

 public:
  TimelineView(TimeAxis& axis, Selection& selection, QWidget* parent = nullptr);  // both must outlive it

  void set_document(std::shared_ptr<const Document> document);  // null: empty
  void set_theme(const Theme& theme);
  void set_measured(std::shared_ptr<const Document> measured);  // its measured twin, drawn below each row; null: none

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  TimeAxis& axis_;
  Selection& selection_;
  std::shared_ptr<const Document> document_ = {};  // shared with the other views and their workers
  std::shared_ptr<const Document> measured_ = {};
  Theme theme_ = {};
};

}  // namespace foreshard
