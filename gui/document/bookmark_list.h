// BookmarkList: the bookmarked moments and ranges of time with their notes, as a table. A double click on the key or the time shows
// that range in the views; a note can be edited in place.
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
  void add(Bookmark bookmark);                // a bookmark that had the same digit loses it
  const Bookmark* at_digit(int digit) const;  // null: no bookmark has this digit
  void edit_note();                           // starts to edit the note of the last bookmark

 Q_SIGNALS:
  void went(const foreshard::Bookmark& bookmark);  // the user asked to see its range
  void changed();                                  // the user added, deleted or edited a bookmark
  void listed();                                   // the rows have changed, by the user or by set_bookmarks

 protected:
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;  // Delete removes the current bookmark, Return shows it

 private:
  void fill();
  void fill_rows();
  std::vector<Bookmark> bookmarks_;
};

}  // namespace foreshard
