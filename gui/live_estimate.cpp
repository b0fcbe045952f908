#include "gui/live_estimate.h"

#include <QFutureWatcher>
#include <QtConcurrent>

#include "core/error.h"
#include "core/strategy_options.h"

namespace foreshard {

EstimateAnswer estimate_of(const Choices& choices) {
  EstimateAnswer answer;
  try {
    const Cluster cluster = cluster_of(choices);
    const auto lowered = lower(model_of(choices), cluster, strategy_of(choices), {.ignore_memory = true});
    if (const auto* infeasible = std::get_if<Infeasible>(&lowered)) {
      answer.refusal = infeasible->reason;
      return answer;
    }
    const Lowered& made = std::get<Lowered>(lowered);
    for (const StrategyOption& option : strategy_options()) answer.resolved[option.path] = option.get(made.strategy);
    if (const auto shortage = does_not_fit(made.plan, cluster)) answer.refusal = shortage->reason;
    if (made.strategy.stages.empty())
      answer.estimate = refine(made, cluster);
    else if (answer.refusal.empty())
      answer.refusal = "No estimate for stages with degrees of their own: simulate.";
  } catch (const Error& error) {
    answer.refusal = error.what();
    answer.wrong_input = true;
  }
  return answer;
}

LiveEstimate::LiveEstimate(QObject* parent) : QObject(parent) { pool_.setMaxThreadCount(1); }

LiveEstimate::~LiveEstimate() { pool_.waitForDone(); }

void LiveEstimate::ask(const Choices& choices) {
  if (busy_)
    next_ = choices;
  else
    work(choices);
}

void LiveEstimate::work(const Choices& choices) {
  busy_ = true;
  auto* watcher = new QFutureWatcher<EstimateAnswer>(this);
  connect(watcher, &QFutureWatcherBase::finished, this, [this, watcher] {
    watcher->deleteLater();
    busy_ = false;
    if (next_) {  // what has come is old: only the newest counts
      const Choices newest = *next_;
      next_.reset();
      work(newest);
      return;
    }
    Q_EMIT answered(watcher->result());
  });
  watcher->setFuture(QtConcurrent::run(&pool_, [choices] { return estimate_of(choices); }));
}

}  // namespace foreshard
