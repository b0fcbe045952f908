// Freshness: whether the central picture is the answer to the current settings. FreshnessVeil shows it: a picture that is not is
// dimmed, and a chip above it says why and offers one action.
#pragma once

#include <QTimer>
#include <QWidget>
#include <cstdint>

class QFrame;
class QLabel;
class QPushButton;

namespace foreshard {

enum class Freshness : std::uint8_t {
  Current,    // the answer to what is chosen
  Computing,  // the answer is being made; what is shown is of the choices before
  Stopped,    // the simulation was stopped by the user or failed
  Refused,    // there is none: a value cannot be read, or the strategy cannot be cut so
};

class FreshnessVeil : public QWidget {
  Q_OBJECT
 public:
  explicit FreshnessVeil(QWidget* over);  // lies over it and lets the mouse through

  // `text` empty: no chip. A computation speaks up only after a moment: most are over by then.
  void set(Freshness freshness, const QString& text = {}, const QString& action = {});
  bool dims() const { return dims_; }
  void leave_bright(QWidget* beside);  // of the same parent: a message lies above the veil
  void set_dims(bool dims);            // false: there is no picture that could be old
  QString text() const;                // of the chip; empty: it is not there

 Q_SIGNALS:
  void acted();

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void place();

  QFrame* chip_ = nullptr;  // beside the veil, not in it: it takes the mouse
  QLabel* words_ = nullptr;
  QPushButton* act_ = nullptr;
  QWidget* bright_ = nullptr;
  QTimer late_;
  bool dims_ = true;
};

}  // namespace foreshard
