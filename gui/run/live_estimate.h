// LiveEstimate: what the engine says of the choices within milliseconds, while a person types; the simulation follows. Works
// in a thread of its own; only the newest question is answered.
#pragma once

#include <QObject>
#include <QThreadPool>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gui/document/choices.h"
#include "strategy/estimate/estimate.h"

namespace foreshard {

struct EstimateAnswer {
  Choices choices = {};                              // which it is the answer to
  std::optional<Estimate> estimate = {};             // none: it cannot be, see `refusal`
  std::string refusal = {};                          // why it cannot be or does not fit; empty: it can and does
  bool wrong_input = false;                          // `refusal` speaks of a name, a file or a value
  bool too_large = false;                            // nothing was tried: it would take seconds and gigabytes
  std::map<std::string, std::string> resolved = {};  // every option, Auto replaced by what it came to
};

// The answer itself, in the calling thread.
EstimateAnswer estimate_of(const Choices& choices);

class LiveEstimate : public QObject {
  Q_OBJECT
 public:
  explicit LiveEstimate(QObject* parent = nullptr);
  ~LiveEstimate() override;
  void ask(const Choices& choices);

 Q_SIGNALS:
  void answered(const foreshard::EstimateAnswer& answer);

 private:
  void work(const Choices& choices);

  QThreadPool pool_;
  bool busy_ = false;
  std::optional<Choices> next_ = {};
};

}  // namespace foreshard
