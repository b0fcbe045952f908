// LiveEstimate: estimates the choices within milliseconds, while the user types. It works in its own thread and answers only the newest
// request.
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
  Choices choices = {};                              // the choices that were estimated
  std::optional<Estimate> estimate = {};             // none: invalid or infeasible, see `refusal`
  std::string refusal = {};                          // why it is invalid, infeasible or does not fit; empty: it fits
  bool wrong_input = false;                          // `refusal` is about a name, a file or a value
  bool too_large = false;                            // not estimated, since that would take seconds and gigabytes
  std::map<std::string, std::string> resolved = {};  // path -> value of every option; Auto replaced by its resolved value
};

// Computes the answer in the calling thread.
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
