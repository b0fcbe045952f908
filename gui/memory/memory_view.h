// MemoryView: a chart of the live bytes by category on the time axis of the timeline, with the limits of the device and the peak. Below
// it, bars show the peaks of all stages. Live peak, order bound and arena are drawn as three separate values.
#pragma once

#include <QFutureWatcher>
#include <QWidget>
#include <memory>

#include "gui/document/document.h"
#include "gui/document/selection.h"
#include "gui/document/time_axis.h"
#include "gui/memory/memory_series.h"
#include "gui/widgets/theme.h"

namespace foreshard {

struct MemoryLimit {  // a horizontal line of the chart
  Bytes at = {};
  QString words = {};
  QColor colour = {};
  Qt::PenStyle style = Qt::SolidLine;
};

class MemoryView : public QWidget {
  Q_OBJECT

 public:
  MemoryView(TimeAxis& axis, Selection& selection, QWidget* parent = nullptr);  // both must outlive it
  ~MemoryView() override;

  void set_document(std::shared_ptr<const Document> document);  // null: empty
  void set_theme(const Theme& theme);
  void set_space(Space space);
  Space space() const { return space_; }
  ClassId shown_class() const { return who_; }
  Bytes capacity() const;              // of the shown space; 0: unknown
  const MemorySeries* series() const;  // of the shown class and space; null: none, or not made yet
  Bytes top() const;                   // the value at the upper edge of the chart
  std::vector<MemoryLimit> limits() const;
  void wait_for_series();  // blocks until the series is made; for screenshots

 Q_SIGNALS:
  void hovered(const QString& words);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void leaveEvent(QEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct Loaded {
    ClassId who = {};
    std::vector<MemorySeries> series = {};
    std::vector<LiveBlock> at_peak = {};      // what is alive at the peak of device memory
    std::shared_ptr<const Document> of = {};  // shared with the views
  };
  static Loaded load(const Document& document, ClassId who);

  QRect chart() const;
  QRect bars() const;
  QRectF bar_of(std::size_t role) const;
  double x_of(Nanoseconds when) const;
  Nanoseconds time_at(double x) const;
  double y_of(Bytes bytes) const;
  Bytes bars_top() const;
  const StageMemory* row() const;
  void follow_selection();
  void show_class(ClassId who);
  int role_under(QPoint at) const;
  QString words_at(QPoint at) const;

  void paint_axis(QPainter& painter) const;
  void paint_limits(QPainter& painter) const;
  void paint_peak(QPainter& painter) const;
  void paint_header(QPainter& painter) const;
  void paint_bars(QPainter& painter) const;
  void paint_bar(QPainter& painter, std::size_t role) const;
  void paint_cursor(QPainter& painter) const;

  TimeAxis& axis_;
  Selection& selection_;
  std::shared_ptr<const Document> document_ = {};  // shared with the other views and their workers
  Theme theme_ = {};
  Space space_ = Space::Device;
  ClassId who_ = {};
  Loaded loaded_ = {};
  QFutureWatcher<Loaded> loading_;
};

}  // namespace foreshard
