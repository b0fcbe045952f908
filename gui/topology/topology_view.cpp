#include "gui/topology/topology_view.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <QtConcurrent>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/plan/ranks.h"
#include "gui/document/background.h"
#include "gui/document/picked_range.h"
#include "gui/document/span_facts.h"
#include "gui/document/timeline_labels.h"
#include "gui/document/words.h"

namespace foreshard {

static constexpr int kTable = 300, kStrip = 64;

TopologyView::TopologyView(TimeAxis& axis, Selection& selection, QWidget* parent)
    : QWidget(parent), axis_(axis), selection_(selection), theme_(theme_of(ThemeName::Dark)) {
  setMinimumSize(320, 200);
  setAccessibleName(tr("Topology"));
  setAccessibleDescription(tr("Parts and links of a node and its fabric; the table of links holds the same in text"));
  const auto repaint = [this] { update(); };
  connect(&axis_, &TimeAxis::visible_changed, this, repaint);
  connect(&axis_, &TimeAxis::selected_changed, this, repaint);
  connect(&selection_, &Selection::changed, this, [this] { follow_selection(); });
  connect(&building_, &QFutureWatcherBase::finished, this, [this] {
    if (!document_) return;
    parts_ = building_.result();
    follow_selection();
    lay_out();
  });
  connect(&loading_, &QFutureWatcherBase::finished, this, [this] {
    if (document_) load_ = loading_.result();
    update();
  });
}

TopologyView::~TopologyView() = default;  // workers keep what they read

std::shared_ptr<const TopologyView::Parts> TopologyView::parts_of(const Document& document) {
  auto parts = std::make_shared<Parts>();
  if (!document.cluster || gpu_count(*document.cluster) <= 0) return parts;
  try {
    parts->network = std::make_shared<const Network>(*document.cluster);
  } catch (const Error&) {  // parts of a node that are not joined: there is nothing to draw
    return parts;
  }
  parts->of_link = classes_of_links(document, *parts->network);
  parts->of_node = classes_of_nodes(*parts->network, parts->of_link);
  return parts;
}

// A worker for the former document may still run; its result is ignored.
void TopologyView::set_document(std::shared_ptr<const Document> document) {
  document_ = std::move(document);
  parts_.reset();
  load_.reset();
  node_ = 0;
  if (document_) {
    building_.setFuture(QtConcurrent::run(guarded([d = document_] { return parts_of(*d); })));
    loading_.setFuture(QtConcurrent::run(
        guarded([d = document_] { return std::shared_ptr<const LinkLoad>(std::make_shared<LinkLoad>(*d)); })));
  }
  lay_out();
}

void TopologyView::wait_for_load() {
  if (!document_) return;
  building_.waitForFinished();
  loading_.waitForFinished();
  parts_ = building_.result();
  load_ = loading_.result();
  lay_out();
}

void TopologyView::set_theme(const Theme& theme) {
  theme_ = theme;
  update();
}

void TopologyView::show_node(int node) {
  node_ = network() ? std::clamp(node, 0, network()->nodes() - 1) : 0;
  lay_out();
}

TimeRange TopologyView::range() const {
  return axis_.selected() && axis_.selected()->length() > Nanoseconds{} ? *axis_.selected() : axis_.visible();
}

double TopologyView::utilization(std::size_t link_class) const {
  if (load_) return load_->utilization(link_class, range());
  const LinkClass& link = document_->trace().links[link_class];
  const double possible = link.bandwidth.value * to_seconds(document_->trace().makespan).value;
  return possible > 0 ? link.bytes / possible : 0;
}

double TopologyView::sharers(std::size_t link_class) const { return load_ ? load_->sharers(link_class, range()) : 0; }

// Only mentions contention: for a link with one transfer at a time the text is empty.
static QString sharing_words(double sharers) {
  return sharers > 1.05 ? TopologyView::tr("shared by %1 flows on average").arg(sharers, 0, 'f', 1) : QString();
}

void TopologyView::follow_selection() {
  update();
  const Picked picked = selection_.picked();
  if (!network() || picked.index < 0) return;
  const ClassId who = class_of(*document_, picked);
  if (!who.valid()) return;
  const std::vector<RankId>& members = document_->trace().classes[who.index()].members;
  const RankId rank = picked.rank.valid() || members.empty() ? picked.rank : members.front();
  const Ranks ranks(document_->plan());
  if (rank.valid() && rank.value < ranks.count() && ranks.device(rank).value < network()->devices())
    show_node(network()->node(ranks.device(rank)));
}

void TopologyView::lay_out() {
  picture_ = {};
  if (network()) {
    const bool table = width() > 700;
    const QRectF diagram(16, 34, width() - 32 - (table ? kTable : 0), height() - kStrip - 66);
    const QRectF strip(16, height() - kStrip + 6, width() - 32, kStrip - 16);
    picture_ = lay_topology(*document_, *network(), parts_->of_link, node_, diagram, strip);
  }
  update();
}

void TopologyView::resizeEvent(QResizeEvent*) { lay_out(); }

QString TopologyView::link_words(std::size_t link_class) const {
  const LinkClass& link = document_->trace().links[link_class];
  QString words = QString::fromStdString(link.name) + "\n" + rate_words(link.bandwidth.value, "B/s") + ", " +
                  tr("%1 used").arg(percent_words(utilization(link_class)));
  if (const QString sharing = sharing_words(sharers(link_class)); !sharing.isEmpty()) words += "\n" + sharing;
  return words;
}

QString TopologyView::name_of_line(const LinkLine& line) const { return QString::fromStdString(network()->name(line.link)); }

int TopologyView::line_under(QPointF at) const {
  int nearest = -1;
  double best = 6;
  for (std::size_t l = 0; l < picture_.lines.size(); ++l) {
    const QPointF a = picture_.lines[l].from, b = picture_.lines[l].to, along = b - a;
    const double length = QPointF::dotProduct(along, along);
    const double share = length > 0 ? std::clamp(QPointF::dotProduct(at - a, along) / length, 0.0, 1.0) : 0;
    const QPointF off = at - (a + along * share);
    const double distance = std::hypot(off.x(), off.y()) - picture_.lines[l].width / 2;
    if (distance >= best) continue;
    best = distance;
    nearest = static_cast<int>(l);
  }
  return nearest;
}

void TopologyView::mousePressEvent(QMouseEvent* event) {
  for (const NodeCell& cell : picture_.nodes)
    if (cell.box.adjusted(0, 0, 1.5, 1.5).contains(event->position())) return show_node(cell.node);
  if (const int hot = hottest_under(event->position()); hot >= 0) return selection_.pick({PickedKind::Link, hot, {}, {}});
  const int line = line_under(event->position());
  if (line < 0 || picture_.lines[static_cast<std::size_t>(line)].link_class < 0) return;
  const LinkLine& hit = picture_.lines[static_cast<std::size_t>(line)];
  selection_.pick({PickedKind::Link, hit.link_class, {}, hit.link});
}

bool TopologyView::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  QString words;
  for (const NodeCell& cell : picture_.nodes)
    if (cell.box.contains(help->pos())) words = tr("node %1").arg(cell.node);
  if (const int hot = hottest_under(help->pos()); hot >= 0) words = link_words(static_cast<std::size_t>(hot));
  if (const int at = line_under(help->pos()); at >= 0) {
    const LinkLine& line = picture_.lines[static_cast<std::size_t>(at)];
    words = name_of_line(line) + "\n" + rate_words(network()->link(line.link).bandwidth.value, "B/s") + ", " +
            (line.link_class >= 0 ? tr("%1 used").arg(percent_words(utilization(static_cast<std::size_t>(line.link_class))))
                                  : tr("not used"));
    const QString sharing =
        line.link_class >= 0 ? sharing_words(sharers(static_cast<std::size_t>(line.link_class))) : QString();
    if (!sharing.isEmpty()) words += "\n" + sharing;
  }
  if (words.isEmpty())
    QToolTip::hideText();
  else
    QToolTip::showText(help->globalPos(), words, this);
  return true;
}

void TopologyView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme_.background);
  QFont small = font();
  small.setPointSizeF(std::max(font().pointSizeF() * 0.88, 6.0));
  painter.setFont(small);
  if (!network()) {
    painter.setPen(theme_.faint);
    painter.drawText(rect().adjusted(20, 0, -20, 0), Qt::AlignCenter | Qt::TextWordWrap,
                     document_ && parts_ && !document_->remarks.empty() ? QString::fromStdString(document_->remarks.front())
                                                                        : tr("The network of the cluster appears here"));
    return;
  }
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(theme_.text);
  const QString where =
      tr("node %1 of %2, %3").arg(node_).arg(network()->nodes()).arg(QString::fromStdString(document_->cluster->name));
  painter.drawText(QRectF(16, 8, width() - 32, 18), Qt::AlignLeft | Qt::AlignVCenter, where);
  paint_lines(painter);
  paint_parts(painter);
  painter.setRenderHint(QPainter::Antialiasing, false);
  paint_nodes(painter);
  if (width() > 700) paint_hottest(painter);
  paint_scale(painter);
}

void TopologyView::paint_lines(QPainter& painter) const {
  const Picked picked = selection_.picked();
  for (const bool used : {false, true})
    for (const LinkLine& line : picture_.lines) {
      if ((line.link_class >= 0) != used) continue;
      if (used && picked.kind == PickedKind::Link && picked.index == line.link_class) {
        painter.setPen(QPen(theme_.accent, line.width + 4, Qt::SolidLine, Qt::RoundCap));
        painter.drawLine(line.from, line.to);
      }
      const QColor colour = used ? theme_.heat(utilization(static_cast<std::size_t>(line.link_class))) : theme_.rule;
      painter.setPen(QPen(colour, used ? line.width : std::max(line.width * 0.4, 1.0), Qt::SolidLine, Qt::RoundCap));
      painter.drawLine(line.from, line.to);
    }
}

void TopologyView::paint_parts(QPainter& painter) const {
  const QFontMetricsF metrics(painter.font());
  for (const PartBox& part : picture_.parts) {
    const bool gpu = part.kind == PartKind::Gpu;
    painter.setPen(QPen(gpu ? theme_.of(Cell::Forward) : theme_.faint, 1.2));
    painter.setBrush(theme_.raised);
    painter.drawRoundedRect(part.box, 4, 4);
    painter.setPen(theme_.text);
    const bool both = !part.note.isEmpty() && part.box.height() > metrics.height() * 2 - 2;
    const QRectF inner = part.box.adjusted(2, both ? 2 : 0, -2, both ? -2 : 0);
    painter.drawText(inner, Qt::AlignHCenter | (both ? Qt::AlignTop : Qt::AlignVCenter),
                     metrics.elidedText(part.label, Qt::ElideRight, inner.width()));
    if (!both) continue;
    painter.setPen(theme_.faint);
    painter.drawText(inner, Qt::AlignHCenter | Qt::AlignBottom, metrics.elidedText(part.note, Qt::ElideRight, inner.width()));
  }
}

std::optional<QFont> number_font(const QFont& font, const std::vector<NodeCell>& cells) {
  const QString longest(QString::number(std::max<std::size_t>(cells.size(), 1) - 1).size(), '0');
  QFont small = font;
  for (double size = font.pointSizeF(); size >= 4.5; size -= 0.5) {
    small.setPointSizeF(size);
    const QFontMetricsF metrics(small);
    if (cells.empty() || (metrics.horizontalAdvance(longest) + 2 < cells.front().box.width() &&
                          metrics.tightBoundingRect("0").height() + 2 < cells.front().box.height()))
      return small;
  }
  return {};
}

void TopologyView::paint_nodes(QPainter& painter) const {
  painter.setPen(theme_.faint);
  painter.drawText(QRectF(16, height() - kStrip - 14, width() - 32, 16), Qt::AlignLeft | Qt::AlignVCenter,
                   tr("all nodes, each by its hottest link; click one to see it above"));
  const QFont before = painter.font();
  const std::optional<QFont> numbers = number_font(before, picture_.nodes);
  painter.setFont(numbers.value_or(before));
  for (const NodeCell& cell : picture_.nodes) {
    double hottest = 0;
    for (const std::int32_t c : parts_->of_node[static_cast<std::size_t>(cell.node)])
      hottest = std::max(hottest, utilization(static_cast<std::size_t>(c)));
    const QColor colour = parts_->of_node[static_cast<std::size_t>(cell.node)].empty() ? theme_.raised : theme_.heat(hottest);
    painter.fillRect(cell.box, colour);
    if (numbers) {
      painter.setPen(theme_.label_on(colour));
      painter.drawText(cell.box, Qt::AlignCenter, QString::number(cell.node));
    }
    if (cell.node != node_) continue;
    painter.setPen(QPen(theme_.accent, 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(cell.box.adjusted(0, 0, -1, -1));
  }
  painter.setFont(before);
}

QRectF TopologyView::hottest_box(std::size_t place) const {
  return {width() - kTable + 4.0, 34.0 + 36.0 * static_cast<double>(place), kTable - 24.0, 36.0};
}

std::vector<std::size_t> TopologyView::hottest() const {
  if (!document_ || width() <= 700) return {};
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t c = 0; c < document_->trace().links.size(); ++c) order.emplace_back(-utilization(c), c);
  const std::size_t shown =
      std::min<std::size_t>(order.size(), static_cast<std::size_t>(std::max((height() - kStrip - 80) / 36, 0)));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end());
  std::vector<std::size_t> classes;
  for (std::size_t i = 0; i < shown; ++i) classes.push_back(order[i].second);
  return classes;
}

int TopologyView::hottest_under(QPointF at) const {
  if (!network() || width() <= 700) return -1;
  const std::vector<std::size_t> classes = hottest();
  for (std::size_t i = 0; i < classes.size(); ++i)
    if (hottest_box(i).contains(at)) return static_cast<int>(classes[i]);
  return -1;
}

void TopologyView::paint_hottest(QPainter& painter) const {
  const std::vector<LinkClass>& links = document_->trace().links;
  const std::vector<std::size_t> order = hottest();
  const double left = width() - kTable + 4, wide = kTable - 24;
  painter.setPen(theme_.text);
  painter.drawText(QRectF(left, 8, wide, 18), Qt::AlignLeft | Qt::AlignVCenter,
                   tr("hottest links in %1").arg(time_text(range().length())));
  for (std::size_t i = 0; i < order.size(); ++i) {
    const LinkClass& link = links[order[i]];
    const double used = utilization(order[i]), y = hottest_box(i).top();
    const bool picked =
        selection_.picked().kind == PickedKind::Link && selection_.picked().index == static_cast<std::int32_t>(order[i]);
    if (picked) painter.fillRect(hottest_box(i).adjusted(-6, -3, 6, -3), theme_.raised);
    painter.setPen(picked ? theme_.accent : theme_.text);
    const QFontMetricsF metrics(painter.font());
    painter.drawText(QRectF(left, y, wide - 50, 16), Qt::AlignLeft | Qt::AlignVCenter,
                     metrics.elidedText(QString::fromStdString(link.name), Qt::ElideMiddle, wide - 92));
    painter.setPen(theme_.faint);
    painter.drawText(QRectF(left, y, wide - 48, 16), Qt::AlignRight | Qt::AlignVCenter,
                     tr("%1 links").arg(count_words(static_cast<std::int64_t>(link.links.size()))));
    painter.setPen(theme_.text);
    painter.drawText(QRectF(left, y, wide, 16), Qt::AlignRight | Qt::AlignVCenter, percent_words(used));
    const double flows = sharers(order[i]);  // a badge here, words in the tooltip
    const QString sharing = flows > 1.05 ? QString::fromUtf8("\u00d7%1").arg(flows, 0, 'f', 1) : QString();
    const double bar = wide - (sharing.isEmpty() ? 0 : metrics.horizontalAdvance(sharing) + 10);
    painter.fillRect(QRectF(left, y + 19, bar, 6), theme_.raised);
    painter.fillRect(QRectF(left, y + 19, bar * std::min(used, 1.0), 6), theme_.heat(used));
    painter.setPen(theme_.limit);
    painter.drawText(QRectF(left, y + 14, wide, 16), Qt::AlignRight | Qt::AlignVCenter, sharing);
  }
}

void TopologyView::paint_scale(QPainter& painter) const {
  const double right = width() - (width() > 700 ? kTable + 60 : 60), wide = 150;
  if (width() < 520) return;
  for (int i = 0; i < static_cast<int>(wide); ++i) painter.fillRect(QRectF(right - wide + i, 12, 1, 10), theme_.heat(i / wide));
  painter.setPen(theme_.faint);
  painter.drawText(QRectF(right - wide - 126, 8, 120, 18), Qt::AlignRight | Qt::AlignVCenter, tr("used: 0 %"));
  painter.drawText(QRectF(right + 6, 8, 60, 18), Qt::AlignLeft | Qt::AlignVCenter, "100 %");
}

}  // namespace foreshard
