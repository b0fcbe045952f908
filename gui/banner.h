// Banner: a message above the views that stays until it is closed, with at most one thing to do about it. Never a dialog.
#pragma once

#include <QFrame>
#include <functional>

class QLabel;
class QPushButton;

namespace foreshard {

class Banner : public QFrame {
  Q_OBJECT
 public:
  explicit Banner(QWidget* parent = nullptr);
  void say(const QString& text, const QString& remedy = {}, std::function<void()> act = {});
  QString text() const;

 private:
  QLabel* text_ = nullptr;
  QPushButton* remedy_ = nullptr;
  std::function<void()> act_ = {};
};

}  // namespace foreshard
