#include "gui/topology_view.h"

#include <QPainter>

namespace foreshard {

TopologyView::TopologyView(TimeAxis& axis, Selection& selection, QWidget* parent)
    : QWidget(parent), axis_(axis), selection_(selection), theme_(theme_of(ThemeName::Dark)) {
  connect(&axis_, &TimeAxis::visible_changed, this, qOverload<>(&QWidget::update));
  connect(&selection_, &Selection::changed, this, qOverload<>(&QWidget::update));
}

void TopologyView::set_document(std::shared_ptr<const Document> document) {
  document_ = std::move(document);
  update();
}

void TopologyView::set_theme(const Theme& theme) {
  theme_ = theme;
  update();
}

void TopologyView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme_.background);
}

}  // namespace foreshard
