#include "validation/learned_runs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

#include "core/base/error.h"
#include "validation/measured_words.h"
#include "validation/prediction_interval.h"
#include "validation/rows_in_parallel.h"

namespace foreshard {

namespace {

std::string joined_cells(const MeasuredRow& row, std::initializer_list<const char*> columns) {
  std::string key;
  for (const char* column : columns) key += row.text(column) + "|";
  return key;
}

bool is_iteration(Quantity quantity) {
  switch (quantity) {
    case Quantity::IterationTime:
    case Quantity::TokensPerGpu:
    case Quantity::Samples:
    case Quantity::SamplesPerGpu:
    case Quantity::TflopsPerGpu:
    case Quantity::Mfu: return true;
    case Quantity::PeakMemory:
    case Quantity::StaticMemory:
    case Quantity::ActivationMemory:
    case Quantity::ActivationShare:
    case Quantity::LayerForward:
    case Quantity::LayerBackward:
    case Quantity::LayerBoth:
    case Quantity::StageForward:
    case Quantity::StageBackwardInput:
    case Quantity::StageBackwardWeight:
    case Quantity::StageTransfer: return false;
  }
  return false;
}

}  // namespace

std::string sweep_of(const MeasuredRow& row) {
  return joined_cells(row, {"source", "measured_quantity", "model_name", "layers", "hidden", "heads", "seq_len", "vocab", "gpu",
                            "num_gpus", "global_batch", "precision", "framework"});
}

// Unknown is unknown: what the network could change of a time widens its interval.
static void predict_networks(Predictor& predictor, const MeasuredCase& question, Asked& row) {
  const bool assumed = std::ranges::count(question.assumed, "inter_link_gbps_per_gpu") > 0;
  if (!assumed || is_memory(question.quantity) || !row.prediction.reason.empty()) return;
  for (const auto& [factor, value] : {std::pair(0.5, &row.half_network), {2.0, &row.twice_network}}) {
    MeasuredCase other = question;
    for (NodeGroup& group : other.cluster.nodes) group.shape.nic_bandwidth.value *= factor;
    *value = predictor.predict(other).value;
  }
}

std::vector<Asked> predict_all(Predictor& predictor, const std::vector<MeasuredRow>& rows, const ReadCase& read) {
  std::vector<Asked> asked(rows.size());
  in_parallel(rows.size(), [&](std::size_t i) {
    Asked& row = asked[i];
    row.row = &rows[i];
    const auto refused = [&](SkipReason why, const char* problem) {
      row.question = why, row.problem = problem, row.prediction = {};
    };
    try {
      expect_measured(rows[i]);
      row.question = read(rows[i]);
      const auto* question = std::get_if<MeasuredCase>(&row.question);
      if (!question) return;
      row.prediction = predictor.predict(*question);
      predict_networks(predictor, *question, row);
    } catch (const Error& wrong) {
      refused(SkipReason::BadCell, wrong.what());
    } catch (const std::logic_error& bug) {  // a Bug, or what the library throws for wrong indices
      refused(SkipReason::Bug, bug.what());
    }
  });
  return asked;
}

double in_unit_of(const Asked& asked, double value) {
  const bool share = std::get<MeasuredCase>(asked.question).quantity == Quantity::Mfu && !ran_out_of_memory(*asked.row) &&
                     *asked.row->number("measured_value") <= 1.0;
  return share ? value / 100.0 : value;
}

std::vector<RunRow> runs_of(const std::vector<Asked>& asked) {
  std::vector<RunRow> rows;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto* question = std::get_if<MeasuredCase>(&asked[i].question);
    const MeasuredRow& row = *asked[i].row;
    if (!question || !is_iteration(question->quantity) || ran_out_of_memory(row) || asked[i].prediction.chosen < 0) continue;
    rows.push_back({.asked = i,
                    .machine = joined_cells(row, {"source", "gpu"}) + (has_experts(row) ? "experts" : ""),
                    .device = question->cluster.nodes.front().shape.gpu,
                    .run = joined_cells(row, {"source", "row_id"}),
                    .sweep = joined_cells(row, {"source", "model_name", "layers", "hidden", "heads", "seq_len", "vocab", "gpu",
                                                "num_gpus", "global_batch", "precision", "framework"}),
                    .model = joined_cells(row, {"layers", "hidden"}),
                    .predicted = in_unit_of(asked[i], asked[i].prediction.value),
                    .measured = *row.number("measured_value"),
                    .rate = is_rate(question->quantity)});
  }
  in_parallel(rows.size(), [&](std::size_t i) {
    const Asked& of = asked[rows[i].asked];
    try {
      rows[i].shares = Predictor::shares(std::get<MeasuredCase>(of.question), of.prediction.chosen);
    } catch (const std::logic_error& bug) {
      rows[i].problem = bug.what();
    }
  });
  return rows;
}

LearnedCosts learn_from(const std::vector<RunRow>& rows, const std::vector<std::size_t>& which) {
  std::set<std::string> seen;
  std::vector<LearnedRun> runs;
  for (const std::size_t i : which)
    if (!rows[i].shares.empty() && seen.insert(rows[i].run).second)
      runs.push_back({.shares = rows[i].shares, .ratio = rows[i].ratio()});
  return learn_costs(runs);
}

std::vector<LearnedPrediction> predict_left_out(Predictor& predictor, const std::vector<Asked>& asked,
                                                const std::vector<RunRow>& rows, std::string RunRow::*key) {
  std::map<std::string, std::vector<std::size_t>> machines;
  for (std::size_t i = 0; i < rows.size(); ++i) machines[rows[i].machine].push_back(i);
  struct Fold {
    const std::vector<std::size_t>* machine = nullptr;
    std::string out = {};
  };
  std::vector<Fold> folds;
  for (const auto& [name, all] : machines) {
    std::set<std::string> keys;
    for (const std::size_t i : all) keys.insert(rows[i].*key);
    for (const std::string& out : keys) folds.push_back({&all, out});
  }
  std::vector<LearnedPrediction> result(rows.size());
  in_parallel(folds.size(), [&](std::size_t f) {
    std::vector<std::size_t> others, out;
    for (const std::size_t i : *folds[f].machine) (rows[i].*key == folds[f].out ? out : others).push_back(i);
    MachineProfile profile{.hash = std::to_string(f) + "|" + folds[f].out, .device = rows[out.front()].device};
    LearnedCosts learned = learn_from(rows, others);
    if (!learned.shapes.empty()) profile.learned = std::move(learned);
    for (const std::size_t i : out) {
      LearnedPrediction& row = result[i];
      row = {.predicted = rows[i].predicted, .learned = profile.learned.has_value()};
      if (!row.learned) continue;
      const Asked& of = asked[rows[i].asked];
      row.predicted = in_unit_of(of, predictor.predict(std::get<MeasuredCase>(of.question), &profile).value);
      const double spread = std::exp(kNinetyPercent * LearnedFactors(*profile.learned).spread(rows[i].shares));
      row.low = row.predicted / spread, row.high = row.predicted * spread;
    }
  });
  return result;
}

}  // namespace foreshard
