// Banner: a message over the lower edge of the views, with at most one button. The views keep their place. The message stays until the
// user closes it, or until the operation that it is about succeeds. It is never a dialog.
#pragma once

#include <QFrame>
#include <cstdint>
#include <functional>

class QLabel;
class QPushButton;

namespace foreshard {

// What a message is about. Origin: what a shown file was made from. Ourselves: an internal error.
enum class About : std::uint8_t { Simulation, Comparison, File, Origin, Search, Run, Program, Ourselves };

class Banner : public QFrame {
  Q_OBJECT
 public:
  explicit Banner(QWidget* over);
  // Shows `text`. `remedy`: the label of the button, which calls `act`; empty: no button.
  void say(About about, const QString& text, const QString& remedy = {}, std::function<void()> act = {});
  void went_well(About about);  // hides the message if it is about this
  QString text() const;
  About about() const { return about_; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void place();

  QLabel* text_ = nullptr;
  QPushButton* remedy_ = nullptr;
  std::function<void()> act_ = {};
  About about_ = About::Program;
};

}  // namespace foreshard
