#include "gui/inspector/inspector_view.h"

#include <QPainter>
#include <QPainterPath>
#include <QTextBrowser>
#include <QUrl>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "gui/document/span_facts.h"
#include "gui/document/words.h"

namespace foreshard {

RooflinePlot::RooflinePlot(QWidget* parent) : QWidget(parent) {
  setFixedHeight(150);
  setAccessibleName(tr("Roofline"));
}

void RooflinePlot::show_point(const RooflinePoint& point, const Theme& theme) {
  point_ = point;
  theme_ = theme;
  setAccessibleDescription(tr("%1 of the %2 possible at this intensity")
                               .arg(rate_words(point.attained, "FLOP/s"), rate_words(point.roof(), "FLOP/s")));
  update();
}

void RooflinePlot::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme_.background);
  if (point_.peak <= 0 || point_.bandwidth <= 0 || point_.intensity <= 0 || point_.attained <= 0) return;
  painter.setRenderHint(QPainter::Antialiasing);
  QFont small = font();
  small.setPointSizeF(std::max(font().pointSizeF() * 0.82, 6.0));
  painter.setFont(small);
  const QRectF area = QRectF(rect()).adjusted(12, 26, -12, -22);
  const double ridge = point_.peak / point_.bandwidth;
  const double left = std::log10(std::min({0.1 * ridge, point_.intensity / 4, 1.0})),
               right = std::log10(std::max(10 * ridge, point_.intensity * 4));
  const double high = std::log10(point_.peak * 1.8);
  const double low = std::min(std::log10(point_.bandwidth) + left, std::log10(point_.attained / 3));
  const auto at = [&](double intensity, double rate) {
    return QPointF(area.left() + (std::log10(intensity) - left) / (right - left) * area.width(),
                   area.bottom() - (std::log10(rate) - low) / (high - low) * area.height());
  };
  const auto mixed = [&](QColor colour, int alpha) {
    colour.setAlpha(alpha);
    return colour;
  };
  const QPointF start = at(std::pow(10, left), std::pow(10, left) * point_.bandwidth), knee = at(ridge, point_.peak),
                end = at(std::pow(10, right), point_.peak);
  QPainterPath below(start);
  below.lineTo(knee);
  below.lineTo(end);
  below.lineTo(area.bottomRight());
  below.lineTo(area.bottomLeft());
  painter.fillPath(below, mixed(theme_.accent, 26));
  painter.setPen(QPen(theme_.accent, 1.8));
  painter.drawPolyline(QPolygonF({start, knee, end}));
  painter.setPen(QPen(theme_.rule, 1, Qt::DashLine));
  painter.drawLine(QPointF(knee.x(), knee.y()), QPointF(knee.x(), area.bottom()));
  painter.setPen(theme_.faint);
  painter.drawText(QRectF(area.left(), 4, area.width(), 18), Qt::AlignRight | Qt::AlignVCenter,
                   rate_words(point_.peak, "FLOP/s"));
  painter.drawText(QRectF(area.left(), area.bottom() + 3, area.width(), 16), Qt::AlignLeft | Qt::AlignVCenter,
                   tr("memory bound"));
  painter.drawText(QRectF(area.left(), area.bottom() + 3, area.width(), 16), Qt::AlignRight | Qt::AlignVCenter,
                   tr("compute bound"));
  const QPointF here = at(point_.intensity, point_.attained), roof = at(point_.intensity, point_.roof());
  painter.setPen(QPen(theme_.faint, 1, Qt::DotLine));
  painter.drawLine(here, roof);
  painter.setPen(QPen(theme_.background, 2));
  painter.setBrush(theme_.of(Cell::Backward));
  painter.drawEllipse(here, 5.5, 5.5);
  painter.setPen(theme_.text);
  const QString words =
      tr("%1 of the roof, %2 FLOP/B").arg(percent_words(point_.attained / point_.roof()), number_words(point_.intensity));
  painter.drawText(QRectF(area.left(), 4, area.width(), 18), Qt::AlignLeft | Qt::AlignVCenter, words);
}

InspectorView::InspectorView(TimeAxis& axis, Selection& selection, QWidget* parent)
    : QWidget(parent), axis_(axis), selection_(selection), theme_(theme_of(ThemeName::Dark)) {
  setAccessibleName(tr("Inspector"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  page_ = new QTextBrowser;
  page_->setFrameShape(QFrame::NoFrame);
  page_->setOpenLinks(false);
  page_->setAccessibleName(tr("What is known about the selection"));
  plot_ = new RooflinePlot;
  column->addWidget(plot_);
  column->addWidget(page_, 1);
  connect(&selection_, &Selection::changed, this, &InspectorView::refill);
  connect(page_, &QTextBrowser::anchorClicked, this, [this](const QUrl& link) {
    const QStringList parts = link.path().split('/');
    if (parts.size() != 2) return;
    const auto kind = static_cast<PickedKind>(std::clamp(parts[0].toInt(), 0, static_cast<int>(PickedKind::Action)));
    selection_.pick({kind, parts[1].toInt(), {}});
  });
  refill();
}

void InspectorView::set_document(std::shared_ptr<const Document> document) {
  document_ = std::move(document);
  twin_.reset();
  refill();
}

void InspectorView::set_twin(std::shared_ptr<const Twin> twin) {
  twin_ = std::move(twin);
  refill();
}

void InspectorView::set_theme(const Theme& theme) {
  theme_ = theme;
  refill();
}

QString InspectorView::text() const { return page_->toPlainText(); }

static QString page_of(const Facts& facts, const Theme& theme) {
  const auto coloured = [](const QString& words, const QColor& colour) {
    const QString text = rich_words(words).replace("  ", "&nbsp;&nbsp;&nbsp;");  // a part of the line above is indented
    return "<span style='color:" + colour.name() + "'>" + text + "</span>";
  };
  QString page = "<h3 style='margin:6px 8px 2px 8px'>" + rich_words(facts.title) + "</h3>";
  if (!facts.explained.isEmpty()) page += "<p style='margin:0 8px 4px 8px'>" + coloured(facts.explained, theme.faint) + "</p>";
  for (const FactSection& section : facts.sections) {
    page += "<p style='margin:10px 8px 2px 8px'><b>" + coloured(section.title, theme.accent) + "</b></p>";
    page += "<table width='100%' cellspacing='0' cellpadding='2' style='margin:0 6px 0 6px'>";
    for (const Fact& fact : section.facts) {
      const QString link = QString("pick:%1/%2").arg(static_cast<int>(fact.leads_to.kind)).arg(fact.leads_to.index);
      const auto cell = [&](const QString& words, const QColor& colour, bool linked) {
        const QString shown = coloured(words, linked ? theme.accent : colour);
        return linked ? "<a style='text-decoration:none' href='" + link + "'>" + shown + "</a>" : shown;
      };
      const bool leads = fact.leads_to.kind != PickedKind::Nothing;
      if (fact.value.isEmpty()) {
        page += "<tr><td colspan='2'>" + cell(fact.label, theme.faint, leads) + "</td></tr>";
        continue;
      }
      page += "<tr><td>" + cell(fact.label, theme.faint, leads) + "</td><td align='right'>" +
              cell(fact.value, theme.text, false) + "</td></tr>";
    }
    page += "</table>";
  }
  return page;
}

void InspectorView::refill() {
  if (!document_) {
    plot_->hide();
    return page_->setHtml({});
  }
  const Facts facts = facts_of(*document_, selection_.picked(), twin_.get());
  page_->setHtml(page_of(facts, theme_));
  plot_->setVisible(facts.roofline.has_value());
  if (facts.roofline) plot_->show_point(*facts.roofline, theme_);
}

}  // namespace foreshard
