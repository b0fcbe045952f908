// BookmarkList: moments and stretches of time with a note, as a table; a double click goes there, notes can be edited.
#pragma once

#include <QTableWidget>
#include <vector>

#include "gui/document/workspace.h"

namespace foreshard {

class BookmarkList : public QTableWidget {
  Q_OBJECT
 public:
  explicit BookmarkList(QWidget* parent = nullptr);
  const std::vector<Bookmark>& bookmarks() const { return bookmarks_; }
  void set_bookmarks(std::vector<Bookmark> bookmarks);
  void add(Bookmark bookmark);  // takes its digit from whoever had it
  const Bookmark* at_digit(int digit) const;
  void edit_note();  // of the last one: what is typed next is its note

 Q_SIGNALS:
  void went(const foreshard::Bookmark& bookmark);
  void changed();
  void listed();  // what is shown has changed, by a person or not

 protected:
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;  // Delete, Return

 private:
  void fill();
  void fill_rows();
  std::vector<Bookmark> bookmarks_;
};

}  // namespace foreshard
