#include "gui/help_overlay.h"

#include <QEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QRegularExpression>
#include <algorithm>
#include <map>

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
void HelpOverlay::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  QColor veil = theme_.background;
  veil.setAlphaF(0.94F);
  painter.fillRect(rect(), veil);
  const QFontMetrics metrics(font());
  const int line = metrics.height() + 6, margin = 48,
            column = std::max(300, (width() - 2 * margin) / std::max(1, (width() - 2 * margin) / 360));
  int widest = 0;
  for (const HelpGroup& group : groups_)
    for (const auto& [keys, what] : group.rows) widest = std::max(widest, metrics.horizontalAdvance(keys));
  int x = margin, y = margin;
  QFont bold = font();
  bold.setBold(true);
  for (const HelpGroup& group : groups_) {
    const int height = line * (static_cast<int>(group.rows.size()) + 2);
    if (y + height > this->height() - margin && y > margin) x += column, y = margin;
    painter.setFont(bold);
    painter.setPen(theme_.accent);
    painter.drawText(x, y + metrics.ascent(), group.title);
    painter.setFont(font());
    y += line;
    for (const auto& [keys, what] : group.rows) {
      painter.setPen(theme_.faint);
      painter.drawText(QRect(x, y, widest, line), Qt::AlignRight | Qt::AlignVCenter, keys);
      painter.setPen(theme_.text);
      painter.drawText(QRect(x + widest + 14, y, column - widest - 30, line), Qt::AlignLeft | Qt::AlignVCenter,
                       metrics.elidedText(what, Qt::ElideRight, column - widest - 30));
      y += line;
    }
    y += line;
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
