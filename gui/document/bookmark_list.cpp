#include "gui/document/bookmark_list.h"

#include <QHeaderView>
#include <QKeyEvent>
#include <QPainter>
#include <QSignalBlocker>

#include "gui/document/search_rows.h"

namespace foreshard {

BookmarkList::BookmarkList(QWidget* parent) : QTableWidget(parent) {
  setColumnCount(3);
  setHorizontalHeaderLabels({tr("key"), tr("time"), tr("note")});
  setAccessibleName(tr("Bookmarks"));
  setSelectionBehavior(QAbstractItemView::SelectRows);
  setShowGrid(false);
  setAlternatingRowColors(true);
  verticalHeader()->hide();
  verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 8);
  horizontalHeader()->setHighlightSections(false);
  horizontalHeader()->setStretchLastSection(true);
  horizontalHeader()->setMinimumSectionSize(horizontalHeader()->fontMetrics().horizontalAdvance(tr("key")) + 24);
  horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  const auto go = [this](int row, int column) {
    if (column != 2 && row >= 0 && row < static_cast<int>(bookmarks_.size()))
      Q_EMIT went(bookmarks_[static_cast<std::size_t>(row)]);
  };
  connect(this, &QTableWidget::cellDoubleClicked, this, go);
  connect(this, &QTableWidget::itemChanged, this, [this](QTableWidgetItem* item) {
    if (item->column() != 2) return;
    bookmarks_[static_cast<std::size_t>(item->row())].note = item->text().toStdString();
    Q_EMIT changed();
    Q_EMIT listed();
  });
}

void BookmarkList::set_bookmarks(std::vector<Bookmark> bookmarks) {
  bookmarks_ = std::move(bookmarks);
  fill();
}

void BookmarkList::add(Bookmark bookmark) {
  if (bookmark.digit > 0)
    for (Bookmark& other : bookmarks_)
      if (other.digit == bookmark.digit) other.digit = 0;
  bookmarks_.push_back(std::move(bookmark));
  fill();
  Q_EMIT changed();
}

const Bookmark* BookmarkList::at_digit(int digit) const {
  for (const Bookmark& bookmark : bookmarks_)
    if (bookmark.digit == digit) return &bookmark;
  return nullptr;
}

static QString range_text(const TimeRange& range) {
  const QString begin = time_text(static_cast<double>(range.begin.value) * 1e-9);
  return range.begin == range.end ? begin : begin + " – " + time_text(static_cast<double>(range.end.value) * 1e-9);
}

void BookmarkList::fill() {
  {
    const QSignalBlocker quiet(this);
    fill_rows();
  }
  Q_EMIT listed();
}

void BookmarkList::fill_rows() {
  setRowCount(static_cast<int>(bookmarks_.size()));
  int row = 0;
  for (const Bookmark& bookmark : bookmarks_) {
    auto* key = new QTableWidgetItem(bookmark.digit > 0 ? QString::number(bookmark.digit) : QString());
    auto* time = new QTableWidgetItem(range_text(bookmark.range));
    for (QTableWidgetItem* item : {key, time}) item->setFlags(item->flags() & ~Qt::ItemIsEditable);
    setItem(row, 0, key);
    setItem(row, 1, time);
    setItem(row++, 2, new QTableWidgetItem(QString::fromStdString(bookmark.note)));
  }
  resizeColumnToContents(0);
  resizeColumnToContents(1);
}

void BookmarkList::edit_note() {
  if (rowCount() == 0) return;
  scrollToBottom();
  setCurrentCell(rowCount() - 1, 2);
  setFocus(Qt::ShortcutFocusReason);
  editItem(item(rowCount() - 1, 2));
}

void BookmarkList::paintEvent(QPaintEvent* event) {
  QTableWidget::paintEvent(event);
  if (rowCount() > 0) return;
  QPainter painter(viewport());
  painter.setPen(palette().color(QPalette::PlaceholderText));
  painter.drawText(viewport()->rect().adjusted(16, 8, -16, -8), Qt::AlignCenter | Qt::TextWordWrap,
                   tr("No bookmarks yet. Ctrl+B marks the selected range, or the moment under the mouse."));
}

void BookmarkList::keyPressEvent(QKeyEvent* event) {
  const int row = currentRow();
  const bool some = row >= 0 && row < static_cast<int>(bookmarks_.size()) && state() != QAbstractItemView::EditingState;
  if (some && event->key() == Qt::Key_Delete) {
    bookmarks_.erase(bookmarks_.begin() + row);
    fill();
    Q_EMIT changed();
  } else if (some && (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter)) {
    Q_EMIT went(bookmarks_[static_cast<std::size_t>(row)]);
  } else {
    QTableWidget::keyPressEvent(event);
  }
}

}  // namespace foreshard
