#include "gui/compare_view.h"

#include <QPainter>

namespace foreshard {

CompareView::CompareView(TimeAxis& axis, Selection& selection, QWidget* parent)
    : QWidget(parent), axis_(axis), selection_(selection), theme_(theme_of(ThemeName::Dark)) {
  connect(&axis_, &TimeAxis::visible_changed, this, qOverload<>(&QWidget::update));
  connect(&selection_, &Selection::changed, this, qOverload<>(&QWidget::update));
}

void CompareView::set_documents(std::shared_ptr<const Document> a, std::shared_ptr<const Document> b) {
  a_ = std::move(a);
  b_ = std::move(b);
  update();
}

void CompareView::set_mode(CompareMode mode) {
  mode_ = mode;
  update();
}

void CompareView::set_theme(const Theme& theme) {
  theme_ = theme;
  update();
}

void CompareView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme_.background);
}

}  // namespace foreshard
