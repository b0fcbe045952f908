// PaletteBox: an input line with a list of the entries that match the typed letters. It serves as command palette (Ctrl+K) and as
// search box (Ctrl+F).
#pragma once

#include <QFrame>
#include <QPointer>
#include <functional>
#include <vector>

class QLineEdit;
class QListWidget;

namespace foreshard {

struct PaletteEntry {
  QString text = {}, aside = {};  // aside: the keys of an action, or the place of a hit
  std::function<void()> act = {};
};

class PaletteBox : public QFrame {
  Q_OBJECT
 public:
  using Find = std::function<std::vector<PaletteEntry>(const QString& query)>;
  explicit PaletteBox(QWidget* parent);  // shown on top of its parent

  // open: a fixed list, filtered by fuzzy_score. open_finding: `find` makes the list for every query. `prompt`: the placeholder text.
  void open(const QString& prompt, std::vector<PaletteEntry> entries);
  void open_finding(const QString& prompt, Find find);
  QLineEdit* line() const { return line_; }
  QListWidget* list() const { return list_; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void appear(const QString& prompt);
  void refill();
  void accept();
  void give_back();  // hides; the keyboard focus returns to where it was

  QLineEdit* line_ = nullptr;
  QListWidget* list_ = nullptr;
  std::vector<PaletteEntry> entries_, shown_;
  Find find_ = {};
  QPointer<QWidget> before_ = {};  // the widget that had the keyboard focus
};

}  // namespace foreshard
