#include "validation/score_rows.h"

#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "validation/measured_words.h"
#include "validation/shipped_interval.h"

namespace foreshard {

namespace {

bool is_narrow(const MeasuredRow& row) { return row.mentions("precision", "fp8") || row.mentions("precision", "fp4"); }

// Whether a row skipped for `reason` states all that a prediction of a dense model needs: shape, degrees and batch.
bool is_complete(SkipReason reason) {
  switch (reason) {
    case SkipReason::UnknownExperts:
    case SkipReason::MixtureAlone:
    case SkipReason::Mla:
    case SkipReason::Lora:
    case SkipReason::Fp4:
    case SkipReason::Precision:
    case SkipReason::UnknownShape:
    case SkipReason::UnknownDegree:
    case SkipReason::UnknownBatch:
    case SkipReason::BadCell: return false;
    case SkipReason::UnknownGpu:
    case SkipReason::Schedule:
    case SkipReason::EmptyStage:
    case SkipReason::Offload:
    case SkipReason::Quantity:
    case SkipReason::Infeasible:
    case SkipReason::Bug: return true;
  }
  return true;
}

SkippedRow skipped_row(const MeasuredRow& row, SkipReason reason, const std::string& explanation = "") {
  return {.file = row.file,
          .row_id = row.text("row_id"),
          .source = row.text("source"),
          .reason = name_of(reason),
          .explanation = explanation,
          .line = row.line,
          .narrow = is_narrow(row),
          .complete = is_complete(reason) && !has_experts(row)};
}

class Scorer {
 public:
  explicit Scorer(const Comparisons& published) : published_(published) {}
  void add(const Asked& asked, std::size_t number) {
    const MeasuredRow& row = *asked.row;
    if (const auto* reason = std::get_if<SkipReason>(&asked.question)) {
      skipped_.push_back(skipped_row(row, *reason, asked.problem));
      return;
    }
    const MeasuredCase& question = std::get<MeasuredCase>(asked.question);
    const Prediction& prediction = asked.prediction;
    if (!prediction.reason.empty()) {
      skipped_.push_back(skipped_row(row, SkipReason::Infeasible, prediction.reason));
      return;
    }
    const bool out = ran_out_of_memory(row);
    ValidatedRow scored = {
        .file = row.file,
        .row_id = row.text("row_id"),
        .source = row.text("source"),
        .gpu = row.text("gpu"),
        .framework = question.stack,
        .quantity = row.text("measured_quantity"),
        .architecture = gpu_of(question.cluster, question.cluster.nodes.front().shape.gpu).architecture,
        .line = row.line,
        .memory = is_memory(question.quantity),
        .experts = has_experts(row),
        .adapters = adapter_rank(row) > 0,
        .larger_is_better = is_rate(question.quantity),
        .ran_out = out,
        .fits = prediction.fits,
        .close = is_close(prediction.filled, memory_spread(published_, question.stack, adapter_rank(row) > 0)),
        .measured = out ? 0.0 : *row.number("measured_value"),
        .predicted = in_unit_of(asked, prediction.value),
        .sweep = sweep_of(row),
        .assumed = question.assumed,
        .narrow = is_narrow(row),
        .candidates = prediction.candidates};
    const Strategy& strategy = question.candidates.front();
    scored.shipped.tokens = static_cast<double>(strategy.batch.micro * strategy.batch.seq);
    if (!scored.ran_out && (!scored.memory || question.quantity == Quantity::PeakMemory))
      give_interval(scored, question, asked);
    const bool whole = question.quantity <= Quantity::PeakMemory;
    scored.checks_memory = whole && runs_.insert(scored.source + "|" + scored.row_id).second;
    scored_.push_back(std::move(scored));
    asked_.push_back(number);
  }
  ScoredRows finish() { return {.validation = validate(std::move(scored_), std::move(skipped_)), .asked = std::move(asked_)}; }

 private:
  // Sets the shipped interval. `validate` keeps it as the row's own where its table has too few rows.
  void give_interval(ValidatedRow& row, const MeasuredCase& question, const Asked& asked) {
    const auto [others, fresh] = without_.try_emplace(row.source, published_);
    if (fresh) others->second = published_.without(row.source);
    const Strategy& strategy = question.candidates.front();
    PredictedRun run = predicted_run(question.cluster, strategy, row.experts);
    run.framework = row.framework;
    const Gpu& gpu = gpu_of(question.cluster, question.cluster.nodes.front().shape.gpu);
    Spread spread = row.memory ? others->second.memory(run) : time_spread(others->second, run, gpu, strategy.precision);
    if (asked.half_network > 0 && asked.twice_network > 0) {
      const double slower = std::abs(std::log(asked.half_network / asked.prediction.value)),
                   faster = std::abs(std::log(asked.twice_network / asked.prediction.value));
      spread = wider(spread, faster, slower);
    }
    if (spread.basis == Spread::Basis::Nothing) return;
    row.shipped.low = row.predicted * (row.larger_is_better ? 1 / spread.high : spread.low);
    row.shipped.high = row.predicted * (row.larger_is_better ? 1 / spread.low : spread.high);
    row.shipped.compared = spread.basis == Spread::Basis::ThisGpu;
    const Spread constant = others->second.constant(row.memory);
    row.shipped.constant_low = constant.low, row.shipped.constant_high = constant.high;
    if (!row.memory)
      row.interval.low = row.shipped.low, row.interval.high = row.shipped.high,
      row.interval.extrapolated = !row.shipped.compared;
  }

  const Comparisons& published_;
  std::map<std::string, Comparisons> without_ = {};  // the source
  std::vector<ValidatedRow> scored_ = {};
  std::vector<std::size_t> asked_ = {};
  std::vector<SkippedRow> skipped_ = {};
  std::set<std::string> runs_ = {};  // runs whose out-of-memory verdict is counted already
};

}  // namespace

ScoredRows score_rows(const std::vector<Asked>& asked, const Comparisons& published) {
  Scorer scorer(published);
  for (std::size_t i = 0; i < asked.size(); ++i) scorer.add(asked[i], i);
  return scorer.finish();
}

std::vector<LearningCell> learning_of(Predictor& predictor, const std::vector<Asked>& asked, const ScoredRows& scored) {
  std::vector<RunRow> rows = runs_of(asked);  // dense models only, as in the tables of this score
  std::erase_if(rows, [&](const RunRow& row) {
    const MeasuredRow& of = *asked[row.asked].row;
    return has_experts(of) || adapter_rank(of) > 0;
  });
  const std::vector<LearnedPrediction> by_sweep = predict_left_out(predictor, asked, rows, &RunRow::sweep);
  const std::vector<LearnedPrediction> by_model = predict_left_out(predictor, asked, rows, &RunRow::model);
  std::map<std::size_t, const ValidatedRow*> plain;
  for (std::size_t i = 0; i < scored.asked.size(); ++i) plain[scored.asked[i]] = &scored.validation.scored[i];
  std::vector<LearningRow> learning;
  for (std::size_t i = 0; i < rows.size(); ++i)
    learning.push_back({.plain = *plain.at(rows[i].asked), .sweep_out = by_sweep[i], .model_out = by_model[i]});
  return learning_cells(learning);
}

}  // namespace foreshard
