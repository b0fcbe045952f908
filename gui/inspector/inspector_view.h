// InspectorView: the facts about the picked span, bubble, class or link, with hyperlinks along the binding chain, and the roofline plot of
// an operation.
#pragma once

#include <QWidget>
#include <memory>

#include "gui/document/facts.h"
#include "gui/document/selection.h"
#include "gui/document/time_axis.h"
#include "gui/widgets/theme.h"

class QTextBrowser;

namespace foreshard {

// The roofline of a device with one operation as a point; both axes are logarithmic.
class RooflinePlot : public QWidget {
  Q_OBJECT

 public:
  explicit RooflinePlot(QWidget* parent = nullptr);
  void show_point(const RooflinePoint& point, const Theme& theme);

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  RooflinePoint point_ = {};
  Theme theme_ = {};
};

class InspectorView : public QWidget {
  Q_OBJECT

 public:
  InspectorView(TimeAxis& axis, Selection& selection, QWidget* parent = nullptr);  // both must outlive it

  void set_document(std::shared_ptr<const Document> document);  // null: empty
  void set_twin(std::shared_ptr<const Twin> twin);              // null: no measurement
  void set_theme(const Theme& theme);
  QString text() const;  // what is shown, as plain text

 private:
  void refill();

  TimeAxis& axis_;
  Selection& selection_;
  std::shared_ptr<const Document> document_ = {};  // shared with the other views
  std::shared_ptr<const Twin> twin_ = {};          // shared with the timeline
  Theme theme_ = {};
  QTextBrowser* page_ = nullptr;
  RooflinePlot* plot_ = nullptr;
};

}  // namespace foreshard
