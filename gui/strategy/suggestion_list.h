// SuggestionList: a list below the inspector with changes that would shorten the picked bubble. Each is simulated before it is shown.
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
  // Starts to simulate ideas against the cause; see SuggestionTrial. `seconds_now`: the present iteration time.
  void ask(BubbleCause cause, const Choices& choices, const std::map<std::string, std::string>& resolved, double seconds_now);
  void clear();
  bool busy() const { return trial_.busy(); }

 Q_SIGNALS:
  void chosen(const foreshard::Choices& choices);  // the user clicked a suggestion
  void settled();                                  // all ideas are simulated

 private:
  void refill();
  SuggestionTrial trial_;
  QLabel* title_ = nullptr;
  QVBoxLayout* rows_ = nullptr;
};

}  // namespace foreshard
