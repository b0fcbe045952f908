// Suggestions: changes of the strategy that might shorten the picked bubble. Each is simulated; only those that fit and help are shown.
#pragma once

#include <QObject>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/result/summary.h"
#include "gui/document/choices.h"
#include "gui/run/simulation.h"

namespace foreshard {

struct Suggestion {
  std::string text = {};  // "micro batch 1 -> 2"
  Choices choices = {};
  double seconds = 0;  // simulated time of one iteration; 0: not simulated yet
  double gain = 0;     // seconds by which an iteration becomes shorter
  bool operator==(const Suggestion&) const = default;
};

// Changes to try against a cause of idle time, the most promising first, not simulated yet. `resolved`: every option of the shown
// strategy, path -> value.
std::vector<Suggestion> ideas_against(BubbleCause cause, const Choices& choices,
                                      const std::map<std::string, std::string>& resolved);

// Simulates the ideas one after the other, and drops those that are invalid, do not fit or do not help.
class SuggestionTrial : public QObject {
  Q_OBJECT
 public:
  explicit SuggestionTrial(const QString& program, QObject* parent = nullptr);
  void start(std::vector<Suggestion> ideas, double seconds_now);  // `seconds_now`: the present iteration time
  void stop();
  bool busy() const { return next_ < ideas_.size(); }
  const std::vector<Suggestion>& found() const { return found_; }  // best first
  std::size_t tried() const { return next_; }                      // how many of count()
  std::size_t count() const { return ideas_.size(); }

 Q_SIGNALS:
  void changed();  // an idea was tried

 private:
  void go_on();
  Child child_;
  std::vector<Suggestion> ideas_ = {}, found_ = {};
  std::size_t next_ = 0;
  double now_ = 0;
};

}  // namespace foreshard
