#include "cli/parts/search_output.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "cli/job/interval.h"
#include "cli/parts/framework_words.h"
#include "cli/parts/search_words.h"
#include "cli/program/help.h"
#include "core/json/json.h"
#include "report/words/text_table.h"
#include "strategy/schedule/schedule.h"
#include "strategy/search/search_framework.h"

namespace foreshard {

// Share of the estimated time: compute, tensor communication, pipeline, gradients.
static std::array<double, 4> parts(const Estimate& e) {
  const double rest = e.time.value - e.compute.value - e.communication.value - e.tail.value;
  return {e.compute.value, e.communication.value, std::max(0.0, rest), e.tail.value};
}
static const char* const kParts[] = {"compute", "tensor communication", "waiting in the pipeline", "gradients and update"};

static Candidate ruled_out(const RuledOut& other, const Job& job, const SearchOptions& options) {
  const auto* transformer = std::get_if<Transformer>(&job.model.shape);
  return {.point = other.point, .strategy = strategy_at(options.base, other.point, transformer ? transformer->layers : 0)};
}

static std::string seconds_text(double seconds) { return in_time({seconds}); }

// Money and energy are GPU time times the price or power in the cluster file. Without these, GPU time is compared instead.
static bool priced(const Job& job, Objective objective) {
  return (objective == Objective::Cost && job.cluster.price_per_gpu_hour > 0) ||
         (objective == Objective::Energy && job.cluster.power_per_gpu_watts > 0);
}

static bool by_gpu_time(Objective objective) { return objective == Objective::Cost || objective == Objective::Energy; }

static const char* worse_word(const Job& job, Objective objective) {
  if (by_gpu_time(objective) && !priced(job, objective)) return "more GPU time";
  static constexpr const char* kWorse[] = {"slower", "larger", "more expensive", "more energy", "slower"};
  return kWorse[static_cast<std::size_t>(objective)];
}

static std::string gpu_time_text(const Job& job, Objective objective) {
  if (!by_gpu_time(objective)) return "";
  const bool cost = objective == Objective::Cost;
  return paragraph(std::string("GPU s: GPU seconds of a step") +
                   (priced(job, objective)
                        ? ""
                        : std::string(", which decide: the cluster file has no ") +
                              (cost ? "price (price_per_gpu_hour), and the cost" : "power (power_per_gpu), and the energy") +
                              " grows with them"));
}

// The improvement that the screen predicts if one constraint were dropped.
static std::string binding_text(const SearchResult& result, const Job& job, const SearchOptions& options) {
  if (options.objective != Objective::Time && options.objective != Objective::Cost) return "";
  const Candidate& best = result.ranked.front();
  const double factor = options.objective == Objective::Cost ? best.score / best.seconds() : 1;
  const double mine = best.screened.time * factor;
  std::string out;
  const auto line = [&](const std::string& what, const std::string& without, const std::optional<RuledOut>& other) {
    if (mine <= 0 || !other || other->score >= mine * 0.995) return;
    out += paragraph("Limiting constraint: " + what + ". " + without + ", " + short_name(ruled_out(*other, job, options)) +
                     " would be " + in_percent(1 - other->score / mine) +
                     (options.objective == Objective::Time ? " faster"
                      : priced(job, options.objective)     ? " cheaper"
                                                           : " less GPU time") +
                     " (closed-form estimate).");
  };
  line("memory", "With enough memory", result.without_memory_limit);
  line("--framework " + options.base.framework, "Without it", result.without_framework);
  if (!out.empty() || mine <= 0) return out;
  return paragraph(find_runner(options.base.framework)
                       ? "Neither memory nor " + options.base.framework + " rules out anything faster."
                       : std::string("Memory rules out nothing faster."));
}

// The part of the iteration in which the runner-up loses most of its time; nothing where no part makes most of the difference.
static std::string lost_where(const Candidate& best, const Candidate& second) {
  const auto mine = parts(best.estimate), other = parts(second.estimate);
  std::size_t worst = 0;
  for (std::size_t i = 1; i < mine.size(); ++i)
    if (other[i] - mine[i] > other[worst] - mine[worst]) worst = i;
  const double all = (second.estimate.time - best.estimate.time).value, part = other[worst] - mine[worst];
  if (all <= 0 || part < 0.5 * all || part > 2 * all) return "";
  return " (most of it in " + std::string(kParts[worst]) + ", " + seconds_text(other[worst]) + " against " +
         (mine[worst] > 0 ? seconds_text(mine[worst]) : "none") + ")";
}

static std::string noise_text(const SearchOptions& options) {
  return "differences below " + plain(100 * options.noise) + " % do not count (--noise)";
}

static std::string runner_up_text(const SearchResult& result, const Job& job, const SearchOptions& options) {
  if (result.ranked.size() < 2) return "";
  const Candidate &best = result.ranked[0], &second = result.ranked[1];
  const double loss = second.score / best.score - 1;
  if (loss < 0)
    return paragraph("Less simple: " + short_name(second) + " is " + in_percent(-loss, 2) + " better; " + noise_text(options) +
                     ".");
  return paragraph("Runner-up, " + in_percent(loss, 2) + " " + worse_word(job, options.objective) +
                   (loss < options.noise                   ? " (less than the noise)"
                    : options.objective == Objective::Time ? lost_where(best, second)
                                                           : "") +
                   ": " + short_name(second) + ".");
}

// The time given up by choosing a simpler strategy.
static std::string simpler_text(const Candidate& best, const SearchOptions& options) {
  if (!best.less_simple) return "";
  const Strategy& other = best.less_simple->strategy;
  return paragraph("A less simple variant is " + in_percent(best.less_simple->gain, 2) + " better (" +
                   (other.pipeline.layer_split != best.strategy.pipeline.layer_split
                        ? "--layer-split " + other.pipeline.layer_split
                        : "--recompute " + to_text(other.recompute)) +
                   "); " + noise_text(options) + ".");
}

// The bound that is proved for all strategies that were not refined.
static std::string proof_text(const SearchResult& result, const SearchOptions& options) {
  const Candidate& best = result.ranked.front();
  if (options.objective != Objective::Time || result.interrupted || result.bound >= best.score) return "";
  if (result.bound <= 0) return paragraph("Every strategy of the space was replayed.");
  return paragraph("Lower bound: with these options no strategy with equal stages takes less than " +
                   seconds_text(result.bound) + " (computing and filling the pipeline alone), so none is more than " +
                   in_percent(1 - result.bound / best.score) +
                   " faster than the winner. Replayed: the families of strategies that the closed form ranks best, at most " +
                   count_text(options.refine) + " (--refine).");
}

static std::string winner_text(const SearchResult& result, const Job& job, const SearchOptions& options) {
  const Candidate& best = result.ranked.front();
  std::string out = "\n" + wrapped("Winner: " + short_name(best) + ".", 2) + "\n";
  std::string shares;
  const auto mine = parts(best.estimate);
  for (std::size_t i = 0; i < mine.size(); ++i)
    shares += (i > 0 ? ", " : "") + std::string(kParts[i]) + " " + in_percent(mine[i] / best.estimate.time.value);
  out += paragraph("Bound by " + std::string(name_of(best.estimate.bound_by)) + "; time of the busiest rank: " + shares + ".");
  if (!result.without_host_memory.empty())
    out += paragraph("Uses host memory, for with everything on the GPUs " + result.without_host_memory + ".");
  if (best.gpus() < gpu_count(job.cluster))
    out += paragraph("Uses " + count_text(best.gpus()) + " of " + counted(gpu_count(job.cluster), "GPU") + ".");
  const std::string reserve = "after the " + in_percent(best.strategy.device_memory.reserve, 0) + " reserve.";
  const std::string after = names_framework(job.strategy) ? "as " + job.strategy.framework + " allocates." : reserve;
  out += paragraph(in_gib_text(best.estimate.margin) + " GiB headroom per GPU, " + after);
  if (!best.verdict.reason.empty())
    out += paragraph("No strategy fits for sure; those above may fit. The winner: " + best.verdict.reason + ".");
  if (const std::string how = to_text(best.strategy.recompute); recompute_word(best) == "best")
    out += paragraph("Recomputed layer by layer so that memory is filled: --recompute " + how + ".");
  return out + simpler_text(best, options) + binding_text(result, job, options) + runner_up_text(result, job, options) +
         proof_text(result, options);
}

// "128,198 strategies: 33,726 screened, ...", with the strategies that were skipped, and why.
static std::string counts_text(const SearchResult& result, const SearchOptions& options) {
  const PrunedBy& pruned = result.pruned;
  return wrapped(count_text(result.enumerated) + " strategies: " + count_text(result.evaluated) + " screened, " +
                     count_text(result.refined) + " refined; skipped: " + count_text(pruned.shape) + " invalid, " +
                     count_text(pruned.memory) + " out of memory, " +
                     (pruned.framework > 0 ? count_text(pruned.framework) + " unsupported by " + options.base.framework + ", "
                                           : "") +
                     count_text(pruned.bound) + " provably slower, " + count_text(pruned.redone) + " recomputing needlessly" +
                     failed_text(result) + ".",
                 2) +
         "\n";
}

static TextTable table_of(const std::vector<Candidate>& candidates, int rows) {
  TextTable table{.columns = {{"rank"},
                              {"tp"},
                              {"cp"},
                              {"pp"},
                              {"v"},
                              {"dp"},
                              {"mb"},
                              {"sp"},
                              {"schedule", Align::Left},
                              {"zero"},
                              {"recompute", Align::Left},
                              {"estimate"},
                              {"simulated"},
                              {"peak GiB"},
                              {"free GiB"},
                              {"bound by", Align::Left}}};
  int rank = 0;
  for (const Candidate& c : candidates) {
    if (++rank > rows) break;
    const Point& p = c.point;
    table.rows.push_back({std::to_string(rank), degree_text(c, p.tp, &StageDegrees::tp), std::to_string(p.cp), stages_text(c),
                          std::to_string(p.virtual_stages), degree_text(c, p.dp, &StageDegrees::dp),
                          std::to_string(p.micro_batch), p.sequence_parallel ? "yes" : "no", schedule_word(c), zero_text(p),
                          recompute_word(c), seconds_text(c.estimate.time.value),
                          c.simulated ? seconds_text(*c.simulated) : "-", in_gib_text(c.estimate.peak),
                          in_gib_text(c.estimate.margin), name_of(c.estimate.bound_by)});
  }
  if (std::ranges::any_of(candidates, [](const Candidate& c) { return c.point.ep * c.point.etp > 1; })) {
    table.columns.insert(table.columns.begin() + 6, {"ep"});
    for (std::size_t i = 0; i < table.rows.size(); ++i)
      table.rows[i].insert(table.rows[i].begin() + 6, experts_text(candidates[i].point));
  }
  add_column(table, candidates, "in host memory", [](const Candidate& c) { return in_host_memory(c.strategy.offload); });
  add_column(table, candidates, "with", [](const Candidate& c) { return tried_text(c.strategy); });
  return table;
}

static std::string four_digits(double value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.4g", value);
  return digits;
}

// The quantity that the objective ranks by: GPU time of a step, and where known the money or energy for a million tokens (or samples).
static void add_gpu_time(TextTable& table, const std::vector<Candidate>& candidates, const Job& job, Objective objective) {
  const double price = job.cluster.price_per_gpu_hour, watts = job.cluster.power_per_gpu_watts;
  const bool cost = objective == Objective::Cost, known = priced(job, objective);
  table.columns.push_back({"GPU s"});
  if (known) table.columns.push_back({cost ? "cost per 1M" : "kWh per 1M"});
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const Candidate& c = candidates[i];
    const double gpu_seconds = c.seconds() * c.gpus();
    const double in_step =
        static_cast<double>(c.strategy.batch.global) * static_cast<double>(std::max<std::int64_t>(1, c.strategy.batch.seq));
    table.rows[i].push_back(four_digits(gpu_seconds));
    if (known) table.rows[i].push_back(four_digits(gpu_seconds / 3600 * (cost ? price : watts / 1000) / in_step * 1e6));
  }
}

static std::string sequence_text(const Job& job, const Strategy& strategy) {
  return std::holds_alternative<Transformer>(job.model.shape) ? ", sequence " + count_text(strategy.batch.seq) : "";
}

// Explains the headers and marks that the table has.
static std::string legend_text(const std::vector<Candidate>& candidates, int rows) {
  bool gathers = false, groups = false, experts = false;
  for (int i = 0; i < std::min(rows, static_cast<int>(candidates.size())); ++i) {
    const std::string zero = zero_text(candidates[static_cast<std::size_t>(i)].point);
    gathers |= zero.ends_with('+'), groups |= zero.find(':') != std::string::npos;
    const Point& point = candidates[static_cast<std::size_t>(i)].point;
    experts |= point.ep * point.etp > 1;
  }
  return paragraph(std::string(experts ? "ep: GPUs that share the experts of a layer, 8x2: each of them on 2; " : "") +
                   "v: virtual stages; mb: micro-batch; sp: sequence parallelism; peak, free: of the fullest GPU" +
                   (gathers ? "; zero +: parameter all-gather overlapped" : "") +
                   (groups ? "; zero 2:8: ZeRO-2 in groups of 8 GPUs" : ""));
}

// The best strategy as options of its framework, or why there are none.
static std::string framework_text(const Model& model, const Strategy& strategy) {
  const std::string& name = strategy.framework;
  if (name == Strategy{}.framework) return "";
  std::string out = "\n";
  if (!find_runner(name)) out += "Nothing is known of what " + name + " can run: the space is not restricted.\n";
  if (const std::string none = no_framework_words(model, strategy); !none.empty()) return out + none + "\n";
  return out + framework_words(name, *framework_export(model, strategy));
}

std::string search_text(const SearchResult& result, const Job& job, const SearchOptions& options, int rows) {
  std::string out = job.model.name + " on " + job.cluster.name + ", " + counted(gpu_count(job.cluster), "GPU") +
                    ", global batch " + count_text(job.strategy.batch.global) +
                    sequence_text(job, result.ranked.front().strategy) + ": best by " + name_of(options.objective) + "\n\n";
  const auto table = [&](const std::vector<Candidate>& candidates, int most) {
    TextTable made = table_of(candidates, most);
    if (by_gpu_time(options.objective)) add_gpu_time(made, candidates, job, options.objective);
    return made.text(false);
  };
  out += table(result.ranked, rows) + legend_text(result.ranked, rows) + gpu_time_text(job, options.objective);
  if (!result.front.empty())
    out += "\nTime against memory: nothing is both faster and smaller than these.\n\n" +
           table(result.front, static_cast<int>(result.front.size()));
  out += winner_text(result, job, options);
  out += framework_text(job.model, result.ranked.front().strategy);
  out += "\n" + counts_text(result, options);
  if (result.interrupted) out += "Interrupted: the best so far.\n";
  return out;
}

static void write_candidate(JsonWriter& json, const Job& job, const Candidate& c, int rank) {
  json.begin_object();
  if (rank > 0) json.field("rank", rank);
  json.key("strategy").raw(to_json(c.strategy));
  json.key("estimate").begin_object();
  json.field("time_s", c.estimate.time.value).field("compute_s", c.estimate.compute.value);
  json.field("tensor_communication_s", c.estimate.communication.value).field("tail_s", c.estimate.tail.value);
  json.field("screened_s", c.screened.time);
  json.end_object();
  if (c.simulated)
    json.field("simulated", *c.simulated);
  else
    json.key("simulated").null();
  json.key("interval");
  if (const auto interval = interval_of(job, c.strategy, {c.seconds()}))
    json.begin_line_array().value(interval->low.value).value(interval->high.value).end_array();
  else
    json.null();
  json.field("peak_memory_bytes", c.estimate.peak.value).field("margin_bytes", c.estimate.margin.value);
  json.field("fits", name_of(c.verdict.kind)).field("fits_probability", c.verdict.probability);
  json.field("bound_by", name_of(c.estimate.bound_by)).end_object();
}

std::string search_json(const SearchResult& result, const Job& job, const SearchOptions& options, const SearchJson& how) {
  JsonWriter json;
  json.begin_object();
  const auto maybe = [&](const char* key, const std::optional<double>& value) {
    json.key(key);
    value ? json.value(*value) : json.null();
  };
  json.field("model", job.model.name).field("cluster", job.cluster.name).field("objective", name_of(options.objective));
  json.key("results").begin_array();
  for (int rank = 1; rank <= std::min(how.rows, static_cast<int>(result.ranked.size())); ++rank)
    write_candidate(json, job, result.ranked[static_cast<std::size_t>(rank) - 1], rank);
  json.end_array();
  json.key("front").begin_array();
  for (std::size_t i = 0; i < result.front.size(); ++i) write_candidate(json, job, result.front[i], static_cast<int>(i) + 1);
  json.end_array();
  maybe("lower_bound", result.bound < 1e300 && !result.interrupted ? std::optional(result.bound) : std::nullopt);
  json.field("enumerated", result.enumerated).field("evaluated", result.evaluated).field("refined", result.refined);
  json.key("pruned_by").begin_object();
  json.field("shape", result.pruned.shape)
      .field("memory", result.pruned.memory)
      .field("bound", result.pruned.bound)
      .field("redone", result.pruned.redone);
  json.field("framework", result.pruned.framework);
  json.end_object();
  const auto without = [&](const char* score, const char* strategy, const std::optional<RuledOut>& other) {
    maybe(score, other ? std::optional(other->score) : std::nullopt);
    json.key(strategy);
    other ? json.raw(to_json(ruled_out(*other, job, options).strategy)) : json.null();
  };
  without("screened_without_memory_limit", "strategy_without_memory_limit", result.without_memory_limit);
  without("screened_without_framework", "strategy_without_framework", result.without_framework);
  const Strategy& best = result.ranked.front().strategy;
  FrameworkExport exported = framework_export(job.model, best).value_or(FrameworkExport{});
  if (const std::string none = no_framework_words(job.model, best); !none.empty() && best.framework != Strategy{}.framework)
    exported = {.notes = {none}};
  write_framework_words(json, "framework_flags", "framework_notes", exported);
  json.field("interrupted", result.interrupted).field("measuring_time_s", result.measuring_s);
  json.field("screening_time_s", result.screening_s).field("wall_time_s", how.wall_s);
  json.field("threads", options.threads);
  if (how.add) how.add(json);
  json.end_object();
  return json.text();
}

std::string candidate_json(const Job& job, const Candidate& candidate) {
  JsonWriter json(0);
  json.begin_object().key("candidate");
  write_candidate(json, job, candidate, 0);
  return json.end_object().text();
}

std::string search_csv(const SearchResult& result, int rows) {
  std::string out =
      "rank,tp,cp,pp,virtual_stages,dp,ep,etp,micro_batch,sequence_parallel,schedule,zero,zero_group,layer_split,stages,"
      "overlap_gradients,overlap_parameters,overlap_p2p,overlap_tp,delay_wgrad,recompute,placement,"
      "estimate_s,simulated_s,peak_memory_bytes,margin_bytes,bound_by\n";
  int rank = 0;
  for (const Candidate& c : result.ranked) {
    if (++rank > rows) break;
    const Point& p = c.point;
    for (const std::string& cell : {std::to_string(rank),
                                    degree_text(c, p.tp, &StageDegrees::tp),
                                    std::to_string(p.cp),
                                    stages_text(c),
                                    std::to_string(p.virtual_stages),
                                    degree_text(c, p.dp, &StageDegrees::dp),
                                    std::to_string(p.ep),
                                    std::to_string(p.etp),
                                    std::to_string(p.micro_batch),
                                    std::to_string(p.sequence_parallel),
                                    schedule_entry(p.schedule).name,
                                    std::to_string(p.zero),
                                    std::to_string(p.zero_group),
                                    '"' + c.strategy.pipeline.layer_split + '"',
                                    '"' + to_text(c.strategy.stages) + '"',
                                    std::to_string(p.overlap_gradients),
                                    std::to_string(p.overlap_parameters),
                                    std::to_string(p.overlap_p2p),
                                    std::to_string(c.strategy.communication.overlap.value_or(Overlap{}).tp),
                                    std::to_string(c.strategy.pipeline.delay_wgrad),
                                    '"' + to_text(c.strategy.recompute) + '"',
                                    '"' + order_text(c) + '"',
                                    plain(c.estimate.time.value),
                                    c.simulated ? plain(*c.simulated) : "",
                                    std::to_string(c.estimate.peak.value),
                                    std::to_string(c.estimate.margin.value)})
      out += cell + ",";
    out += std::string(name_of(c.estimate.bound_by)) + "\n";
  }
  return out;
}

}  // namespace foreshard
