// Banner: a message over the lower edge of the views, which do not move for it, with at most one thing to do about it. It stays until
// it is closed, or until what it complains of has gone well. Never a dialog.
#pragma once

#include <QFrame>
#include <cstdint>
#include <functional>

class QLabel;
class QPushButton;

namespace foreshard {

// What a message is about.
enum class About : std::uint8_t { Simulation, Comparison, File, Origin, Search, Run, Program, Ourselves };

class Banner : public QFrame {
  Q_OBJECT
 public:
  explicit Banner(QWidget* over);
  void say(About about, const QString& text, const QString& remedy = {}, std::function<void()> act = {});
  void went_well(About about);  // its message goes
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
