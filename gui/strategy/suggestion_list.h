// SuggestionList: below the inspector, what would shorten the picked bubble, each simulated before it is shown.
#pragma once

#include <QWidget>

#include "gui/strategy/suggestions.h"

class QLabel;
class QVBoxLayout;

namespace foreshard {

class SuggestionList : public QWidget {
  Q_OBJECT
 public:
  explicit SuggestionList(const QString& program, QWidget* parent = nullptr);
  void ask(BubbleCause cause, const Choices& choices, const std::map<std::string, std::string>& resolved, double seconds_now);
  void clear();
  bool busy() const { return trial_.busy(); }

 Q_SIGNALS:
  void chosen(const foreshard::Choices& choices);
  void settled();

 private:
  void refill();
  SuggestionTrial trial_;
  QLabel* title_ = nullptr;
  QVBoxLayout* rows_ = nullptr;
};

}  // namespace foreshard
