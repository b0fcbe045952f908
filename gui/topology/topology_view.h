// TopologyView: nodes, switches and links. The width of a link shows its bandwidth, its colour the utilisation in the visible (or selected)
// range of time. A list beside the diagram names the most utilised links.
#pragma once

#include <QFutureWatcher>
#include <QWidget>
#include <memory>
#include <optional>

#include "gui/document/document.h"
#include "gui/document/selection.h"
#include "gui/document/time_axis.h"
#include "gui/topology/link_load.h"
#include "gui/topology/topology_layout.h"
#include "gui/widgets/theme.h"

namespace foreshard {

// The font for the numbers in the node cells: the largest with which the longest number fits; none: no font fits.
std::optional<QFont> number_font(const QFont& font, const std::vector<NodeCell>& cells);

class TopologyView : public QWidget {
  Q_OBJECT

 public:
  TopologyView(TimeAxis& axis, Selection& selection, QWidget* parent = nullptr);  // both must outlive it
  ~TopologyView() override;

  void set_document(std::shared_ptr<const Document> document);  // null: empty
  void set_theme(const Theme& theme);
  void show_node(int node);
  int shown_node() const { return node_; }
  double utilization(std::size_t link_class) const;  // 0..1, in the range of time that is shown
  double sharers(std::size_t link_class) const;      // as LinkLoad::sharers; 0 also while it is not known
  const TopologyPicture& picture() const { return picture_; }
  QRectF hottest_box(std::size_t place) const;  // of entry `place` in the list of the most utilised links, in the widget
  void wait_for_load();                         // blocks until network and loads are made; for screenshots

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct Parts {                                          // made by a worker thread, since a large cluster takes long
    std::shared_ptr<const Network> network = {};          // null: the cluster is unknown or cannot be drawn
    std::vector<std::int32_t> of_link = {};               // classes_of_links
    std::vector<std::vector<std::int32_t>> of_node = {};  // classes_of_nodes
  };
  static std::shared_ptr<const Parts> parts_of(const Document& document);
  TimeRange range() const;
  const Network* network() const { return parts_ ? parts_->network.get() : nullptr; }
  void lay_out();
  void follow_selection();
  int line_under(QPointF at) const;          // index in TopologyPicture::lines; -1: none
  std::vector<std::size_t> hottest() const;  // classes, most utilised first, as many as the list has room for
  int hottest_under(QPointF at) const;       // a class of links; -1: none
  void paint_lines(QPainter& painter) const;
  void paint_parts(QPainter& painter) const;
  void paint_nodes(QPainter& painter) const;
  void paint_hottest(QPainter& painter) const;
  void paint_scale(QPainter& painter) const;
  QString name_of_line(const LinkLine& line) const;
  QString link_words(std::size_t link_class) const;  // for the tooltip

  TimeAxis& axis_;
  Selection& selection_;
  std::shared_ptr<const Document> document_ = {};  // shared with the other views and their workers
  Theme theme_ = {};
  std::shared_ptr<const Parts> parts_ = {};  // shared with the worker; null: still being made
  QFutureWatcher<std::shared_ptr<const Parts>> building_;
  std::shared_ptr<const LinkLoad> load_ = {};  // made by a worker; null: not ready, the mean of the run is shown
  QFutureWatcher<std::shared_ptr<const LinkLoad>> loading_;
  TopologyPicture picture_ = {};
  int node_ = 0;
};

}  // namespace foreshard
