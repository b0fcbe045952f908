// Freshness: whether the views show the result of the current choices. If they do not, FreshnessVeil dims them; a small box on top (the
// chip) says why and offers one action.
#pragma once

#include <QTimer>
#include <QWidget>
#include <cstdint>

class QFrame;
class QLabel;
class QPushButton;

namespace foreshard {

enum class Freshness : std::uint8_t {
  Current,    // the result of the current choices is shown
  Computing,  // it is being simulated; the views show the result of earlier choices
  Stopped,    // the user stopped the simulation, or it failed
  Refused,    // there is no result: a value cannot be read, or the strategy is infeasible
};

class FreshnessVeil : public QWidget {
  Q_OBJECT
 public:
  explicit FreshnessVeil(QWidget* over);  // covers `over`; mouse events pass through to it

  // `text`: what the chip says; empty: no chip. `action`: the label of its button. While Computing, the chip appears only after a short
  // delay, because most simulations have ended by then.
  void set(Freshness freshness, const QString& text = {}, const QString& action = {});
  bool dims() const { return dims_; }
  void leave_bright(QWidget* beside);  // a sibling that is kept above the veil: the banner
  void set_dims(bool dims);            // false: never dim, since the views are empty
  QString text() const;                // of the chip; empty: it is hidden

 Q_SIGNALS:
  void acted();  // the button of the chip was clicked

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void place();

  QFrame* chip_ = nullptr;  // a sibling of the veil, because it must receive mouse events
  QLabel* words_ = nullptr;
  QPushButton* act_ = nullptr;
  QWidget* bright_ = nullptr;
  QTimer late_;
  bool dims_ = true;
};

}  // namespace foreshard
