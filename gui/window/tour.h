// Tour: the three steps that are shown at the first start: change an option, read a bubble, search. Each is a card beside the widget that
// it explains.
#pragma once

#include <QFrame>
#include <QPointer>
#include <vector>

class QLabel;
class QPushButton;

namespace foreshard {

struct TourStep {
  QString title = {}, text = {};
  QPointer<QWidget> beside = {};  // gets a frame; the card is placed next to it
};

class Tour : public QFrame {
  Q_OBJECT
 public:
  explicit Tour(QWidget* parent);
  void start(std::vector<TourStep> steps);
  int step() const { return at_; }  // index of the shown step; -1: none

 Q_SIGNALS:
  void step_shown(int step);
  void ended();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void go_to(int step);
  void place();

  std::vector<TourStep> steps_;
  int at_ = -1;
  QLabel* count_ = nullptr;
  QLabel* title_ = nullptr;
  QLabel* text_ = nullptr;
  QPushButton* next_ = nullptr;
  QPushButton* skip_ = nullptr;
};

}  // namespace foreshard
