#include "gui/run/simulation.h"

#include <QFile>
#include <QFutureWatcher>
#include <QtConcurrent>

#include "core/base/error.h"
#include "core/json/json_edit.h"
#include "core/strategy/strategy_options.h"
#include "gui/document/background.h"

namespace foreshard {

using namespace std::chrono_literals;

static const char* word_of(Granularity granularity) {
  switch (granularity) {
    case Granularity::Op: return "op";
    case Granularity::Layer: return "layer";
    case Granularity::Stage: return "stage";
  }
  return "";
}

void read_answer(Simulated& simulated, const QByteArray& text) {
  const std::string where = "answer of foreshard", all = text.toStdString();
  const JsonReader json = JsonReader::parse(all, where);
  if (!json.at("feasible").as_bool()) {
    simulated.reason = QString::fromStdString(json.at("infeasible_reason").as_string());
    for (const JsonReader& change : json.at("would_help").elements())
      simulated.would_help << QString::fromStdString(change.as_string());
  }
  if (const auto strategy = json.find("strategy"); strategy && strategy->is_object()) {
    const Strategy resolved = parse_strategy(json_value(all, "strategy", where), where);
    for (const StrategyOption& option : strategy_options()) simulated.resolved[option.path] = option.get(resolved);
  }
}

Simulation::Simulation(const QString& program, QObject* parent) : QObject(parent), child_(program) {
  connect(&child_, &Child::progress, this, &Simulation::progress);
  connect(&child_, &Child::finished, this, &Simulation::take);
}

void Simulation::request(const Choices& choices, Granularity granularity) {
  asked_ = {.choices = choices, .granularity = granularity};
  QStringList words = {"simulate"};
  for (const std::string& word : job_words(choices)) words << QString::fromStdString(word);
  begin(words, granularity);
}

void Simulation::request_plan(const QString& plan_file, Granularity granularity) {
  asked_ = {.granularity = granularity};
  begin({"simulate", "--plan", plan_file}, granularity);
}

void Simulation::request_plan(const Plan& plan, Granularity granularity) {
  const QString file = folder_.filePath("again.plan.json");
  try {
    save_plan(plan, file.toStdString());
    request_plan(file, granularity);
  } catch (const Error& error) {
    Q_EMIT failed(QString::fromStdString(error.what()), false);
  }
}

void Simulation::begin(QStringList words, Granularity granularity) {
  ++request_;
  loading_ = false;
  const QString file = folder_.filePath(QString("%1.result").arg(request_));
  words << "--granularity" << word_of(granularity) << "--save-result" << file << "--json"
        << "--ignore-memory"
        << "--progress"
        << "json";
  Q_EMIT started();
  child_.start(words, 60s);
}

void Simulation::cancel() {
  ++request_;
  loading_ = false;
  child_.cancel();
}

void Simulation::take(const ChildOutcome& outcome) {
  const QString file = folder_.filePath(QString("%1.result").arg(request_));
  if (outcome.end == ChildEnd::Cancelled) {
    Q_EMIT failed({}, false);
    return;
  }
  if (outcome.end != ChildEnd::Done) {
    Q_EMIT failed(outcome.message, outcome.end == ChildEnd::WrongInput);
    return;
  }
  Simulated simulated = asked_;
  try {
    read_answer(simulated, outcome.out);
  } catch (const Error& error) {
    Q_EMIT failed(QString::fromStdString(error.what()), false);
    return;
  }
  if (QFile::exists(file))
    load(std::move(simulated), file);
  else
    Q_EMIT done(simulated);
}

void Simulation::load(Simulated simulated, const QString& file) {
  loading_ = true;
  auto* watcher = new QFutureWatcher<LoadedDocument>(this);
  connect(watcher, &QFutureWatcherBase::finished, this, [this, watcher, simulated, request = request_]() mutable {
    watcher->deleteLater();
    if (request != request_) return;
    loading_ = false;
    const LoadedDocument loaded = watcher->result();
    if (const auto* problem = std::get_if<std::string>(&loaded)) {
      Q_EMIT failed(QString::fromStdString(*problem), false);
      return;
    }
    simulated.document = std::get<std::shared_ptr<const Document>>(loaded);
    Q_EMIT done(simulated);
  });
  watcher->setFuture(QtConcurrent::run([choices = simulated.choices, file] {
    return loaded_by([&] {
      Result result = load_result(file.toStdString());
      QFile::remove(file);
      if (choices.cluster.empty()) return make_document(std::move(result));  // a plan file: it names its cluster
      return make_document(std::move(result), {}, cluster_of(choices));
    });
  }));
}

}  // namespace foreshard
