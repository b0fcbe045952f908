// ParetoView: time against memory of every strategy that a search has found, with the front that nothing beats. Shape and
// colour tell the schedule. A click picks, with Ctrl it compares.
#pragma once

#include <QWidget>

#include "gui/document/search_rows.h"
#include "gui/widgets/theme.h"

namespace foreshard {

class ParetoView : public QWidget {
  Q_OBJECT
 public:
  explicit ParetoView(const SearchRows& rows, QWidget* parent = nullptr);  // `rows` must outlive it
  void set_theme(const Theme& theme);
  void set_marked(int row);         // -1: none
  QPointF place_of(int row) const;  // in pixels
  int row_at(QPointF place) const;  // within 10 pixels; -1: none
  QSize sizeHint() const override { return {360, 220}; }
  QSize minimumSizeHint() const override { return {200, 140}; }

 Q_SIGNALS:
  void picked(int row, bool compare);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  bool event(QEvent* event) override;

 private:
  void measure();
  QRectF plot() const;
  void paint_grid(QPainter& painter) const;
  void paint_points(QPainter& painter) const;
  void paint_legend(QPainter& painter) const;

  const SearchRows& rows_;
  Theme theme_ = {};
  int marked_ = -1;
  double least_time_ = 0, most_time_ = 1, least_memory_ = 0, most_memory_ = 1;  // seconds, GiB; with a border
};

}  // namespace foreshard
