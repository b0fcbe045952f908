#include "gui/run/live_estimate.h"

#include <QFutureWatcher>
#include <QtConcurrent>
#include <algorithm>

#include "core/base/error.h"
#include "core/strategy/strategy_options.h"
#include "gui/document/background.h"
#include "strategy/tune/tune.h"
#include "strategy/verdict/verdict.h"

namespace foreshard {

// Actions that a plan may have to be lowered here, between two keystrokes: some 130 MB of them.
static constexpr std::int64_t kMostActions = 1'000'000;

static std::int64_t actions_of(const Strategy& s) {
  const auto at_least_one = [](std::int64_t count) { return std::max<std::int64_t>(count, 1); };
  const std::int64_t at_once = at_least_one(s.batch.micro) * at_least_one(s.dp);
  return s.batch.global / at_once * at_least_one(s.pp) * at_least_one(s.virtual_stages);
}

EstimateAnswer estimate_of(const Choices& choices) {
  EstimateAnswer answer{.choices = choices};
  try {
    const Cluster cluster = cluster_of(choices);
    const Model model = model_of(choices);
    const Strategy strategy = strategy_of(choices);
    const auto resolved = resolve(model, cluster, strategy);
    if (const auto* whole = std::get_if<Strategy>(&resolved); whole != nullptr && actions_of(*whole) > kMostActions) {
      answer.too_large = true;
      return answer;
    }
    const auto lowered = tuned_plan(model, cluster, strategy, {.ignore_memory = true});
    if (const auto* infeasible = std::get_if<Infeasible>(&lowered)) {
      answer.refusal = infeasible->reason;
      return answer;
    }
    const Lowered& made = std::get<Lowered>(lowered);
    for (const StrategyOption& option : strategy_options()) answer.resolved[option.path] = option.get(made.strategy);
    if (const Verdict judged = verdict(model, cluster, made); judged.kind == Verdict::Kind::DoesNotFit)
      answer.refusal = judged.reason;
    answer.estimate = refine(made, cluster);
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
  watcher->setFuture(QtConcurrent::run(&pool_, guarded([choices] { return estimate_of(choices); })));
}

}  // namespace foreshard
