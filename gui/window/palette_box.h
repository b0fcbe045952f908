// PaletteBox: a line to type a few letters of anything that can be done or found, and the list that fits. Serves as command
// palette (Ctrl+K) and as search box (Ctrl+F).
#pragma once

#include <QFrame>
#include <QPointer>
#include <functional>
#include <vector>

class QLineEdit;
class QListWidget;

namespace foreshard {

struct PaletteEntry {
  QString text = {}, aside = {};  // `aside`: keys, or where it is
  std::function<void()> act = {};
};

class PaletteBox : public QFrame {
  Q_OBJECT
 public:
  using Find = std::function<std::vector<PaletteEntry>(const QString& query)>;
  explicit PaletteBox(QWidget* parent);  // a child that lies over its parent

  // Entries once and filtered by letters, or made anew by `find` for every query.
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
  void give_back();  // hides; the keyboard goes where it was

  QLineEdit* line_ = nullptr;
  QListWidget* list_ = nullptr;
  std::vector<PaletteEntry> entries_, shown_;
  Find find_ = {};
  QPointer<QWidget> before_ = {};  // who had the keyboard
};

}  // namespace foreshard
