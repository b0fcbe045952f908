// ParetoView: a scatter plot of time against memory of every strategy that a search has found, with the Pareto front. Shape and colour of
// a point show its schedule. A click picks a strategy; with Ctrl it compares it.
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
  void set_marked(int row);         // highlights the row's point; -1: none
  QPointF place_of(int row) const;  // of its point, in pixels
  int row_at(QPointF place) const;  // of a point within 10 pixels; -1: none
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
  double least_time_ = 0, most_time_ = 1, least_memory_ = 0, most_memory_ = 1;  // range of the axes, with margins: seconds, GiB
};

}  // namespace foreshard
