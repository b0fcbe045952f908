// Suggestions: changes that might shorten what is picked. Each is simulated before it is shown; only what helps and fits is.
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
  double seconds = 0;  // of one iteration, simulated; 0: not yet
  double gain = 0;     // seconds before - seconds after
  bool operator==(const Suggestion&) const = default;
};

// What to try against a cause, likeliest first; `resolved`: every option of the strategy that is shown. Not simulated yet.
std::vector<Suggestion> ideas_against(BubbleCause cause, const Choices& choices,
                                      const std::map<std::string, std::string>& resolved);

// Simulates the ideas one after the other. Ideas that cannot be, do not fit or do not help fall away.
class SuggestionTrial : public QObject {
  Q_OBJECT
 public:
  explicit SuggestionTrial(const QString& program, QObject* parent = nullptr);
  void start(std::vector<Suggestion> ideas, double seconds_now);
  void stop();
  bool busy() const { return next_ < ideas_.size(); }
  const std::vector<Suggestion>& found() const { return found_; }  // best first
  std::size_t tried() const { return next_; }
  std::size_t count() const { return ideas_.size(); }

 Q_SIGNALS:
  void changed();

 private:
  void go_on();
  Child child_;
  std::vector<Suggestion> ideas_ = {}, found_ = {};
  std::size_t next_ = 0;
  double now_ = 0;
};

}  // namespace foreshard
