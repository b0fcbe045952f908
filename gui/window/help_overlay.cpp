#include "gui/window/help_overlay.h"

#include <QEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QRegularExpression>
#include <algorithm>
#include <map>
#include <optional>

namespace foreshard {

std::vector<HelpGroup> help_groups(const KeyMap& keys) {
  const std::vector<std::pair<QString, QString>> titles = {
      {"file", HelpOverlay::tr("File")}, {"edit", HelpOverlay::tr("Edit")}, {"plan", HelpOverlay::tr("Plan")},
      {"view", HelpOverlay::tr("View")}, {"go", HelpOverlay::tr("Go")},     {"help", HelpOverlay::tr("Help")}};
  static const QRegularExpression later_digit("_[2-9]$");  // bookmarks: the first stands for all nine
  std::vector<HelpGroup> groups;
  for (const auto& [room, title] : titles) {
    HelpGroup group{.title = title};
    for (const KeyEntry& entry : keys.entries()) {
      const bool wanted = entry.name.section('.', 0, 0) == room && !entry.name.contains(later_digit);
      if (wanted && !entry.action->shortcut().isEmpty())
        group.rows.emplace_back(entry.action->shortcut().toString(QKeySequence::NativeText), plain_text(*entry.action));
    }
    if (!group.rows.empty()) groups.push_back(std::move(group));
  }
  groups.push_back({HelpOverlay::tr("In the timeline"),
                    {{HelpOverlay::tr("Ctrl+wheel, W, S"), HelpOverlay::tr("zoom in, zoom out")},
                     {HelpOverlay::tr("Shift+wheel, A, D"), HelpOverlay::tr("pan left, pan right")},
                     {HelpOverlay::tr("drag"), HelpOverlay::tr("select a range")},
                     {HelpOverlay::tr("click"), HelpOverlay::tr("what it is and why")}}});
  return groups;
}

HelpOverlay::HelpOverlay(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Keys"));
  setFocusPolicy(Qt::StrongFocus);
  parent->installEventFilter(this);
  hide();
}

void HelpOverlay::open(std::vector<HelpGroup> groups, const Theme& theme) {
  groups_ = std::move(groups);
  theme_ = theme;
  setGeometry(parentWidget()->rect());
  show();
  raise();
  setFocus();
}

// Columns filled from the top, groups kept together.
static std::optional<HelpLayout> lay_in_columns(const std::vector<HelpGroup>& groups, QSize room, const QFont& font,
                                                int columns) {
  const QFontMetrics metrics(font);
  HelpLayout layout{.font = font, .line = metrics.height() + (room.height() < 800 ? 2 : 6)};
  int widest_words = 0;
  for (const HelpGroup& group : groups)
    for (const auto& [keys, what] : group.rows) {
      layout.keys = std::max(layout.keys, metrics.horizontalAdvance(keys));
      widest_words = std::max(widest_words, metrics.horizontalAdvance(what));
    }
  const int margin = room.width() < 1100 ? 16 : 48;
  layout.column = std::min((room.width() - 2 * margin) / columns, 520);
  int x = margin, y = margin;
  for (const HelpGroup& group : groups) {
    const int height = layout.line * (static_cast<int>(group.rows.size()) + 1);
    if (y + height > room.height() - margin) x += layout.column, y = margin;
    layout.corners.emplace_back(x, y);
    if (x + layout.column > room.width() - margin || y + height > room.height() - margin) return {};
    y += height + layout.line;
  }
  if (layout.keys + 14 + widest_words + 16 > layout.column) return {};
  return layout;
}

HelpLayout lay_help(const std::vector<HelpGroup>& groups, QSize room, QFont font) {
  for (double points = font.pointSizeF(); points > 4; points -= 0.5) {
    font.setPointSizeF(points);
    for (int columns = 1; columns <= 5; ++columns)
      if (auto layout = lay_in_columns(groups, room, font, columns)) return *layout;
  }
  return {};  // too small for anything that could be read
}

void HelpOverlay::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  QColor veil = theme_.background;
  veil.setAlphaF(0.94F);
  painter.fillRect(rect(), veil);
  const HelpLayout layout = lay_help(groups_, size(), font());
  QFont bold = layout.font;
  bold.setBold(true);
  for (std::size_t g = 0; g < layout.corners.size(); ++g) {
    QPoint at = layout.corners[g];
    painter.setFont(bold);
    painter.setPen(theme_.accent);
    painter.drawText(QRect(at, QSize(layout.column, layout.line)), Qt::AlignLeft | Qt::AlignVCenter, groups_[g].title);
    painter.setFont(layout.font);
    for (const auto& [keys, what] : groups_[g].rows) {
      at.ry() += layout.line;
      painter.setPen(theme_.faint);
      painter.drawText(QRect(at, QSize(layout.keys, layout.line)), Qt::AlignRight | Qt::AlignVCenter, keys);
      painter.setPen(theme_.text);
      painter.drawText(QRect(at.x() + layout.keys + 14, at.y(), layout.column - layout.keys - 16, layout.line),
                       Qt::AlignLeft | Qt::AlignVCenter, what);
    }
  }
}

void HelpOverlay::keyPressEvent(QKeyEvent* event) {
  event->accept();
  hide();
}

void HelpOverlay::mousePressEvent(QMouseEvent*) { hide(); }

bool HelpOverlay::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize && isVisible()) setGeometry(parentWidget()->rect());
  return QWidget::eventFilter(watched, event);
}

}  // namespace foreshard
