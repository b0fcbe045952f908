#include "report/tables/summary_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/tables/stage_tables.h"
#include "report/words/text_table.h"

namespace foreshard {

namespace {

constexpr int kBar = 40;

class Writer {
 public:
  Writer(const Summary& summary, const SummaryHeader& header, const TextOptions& options)
      : summary_(summary), header_(header), options_(options) {}

  std::string write() {
    headline();
    if (!summary_.feasible || !summary_.verdict.reason.empty()) refusal();
    if (summary_.iteration_time.value > 0) {
      rates();
      shares();
      section("Stages (times per micro-batch, without waiting; weight grads are part of backward)",
              stage_table(summary_, options_.most_rows));
      section("Pipeline ranks", rank_table(summary_, options_.most_rows));
    }
    memory();
    links();
    cost();
    return std::move(out_);
  }

 private:
  void line(std::string text) {
    text.erase(text.find_last_not_of(' ') + 1);
    out_ += text + '\n';
  }

  void headline() {
    line(fmt::format("{} on {}, {}", header_.model, header_.cluster, counted(summary_.gpus, "GPU")));
    std::string words;
    for (const std::string& word : header_.strategy) {
      if (!words.empty() && width_of(words) + 3 + width_of(word) > static_cast<int>(kTextWidth)) {
        line(words + ',');
        words.clear();
      }
      words += (words.empty() ? "" : ", ") + word;
    }
    if (!words.empty()) line(words);
  }

  void refusal() {
    line("");
    wrapped(summary_.feasible ? "May fit: " + summary_.verdict.reason : "Does not fit: " + summary_.infeasible_reason, "");
    if (summary_.would_help.empty()) return;
    line("What would help:");
    for (const std::string& change : summary_.would_help) wrapped(change, options_.unicode ? "  · " : "  - ");
  }

  void wrapped(const std::string& text, const std::string& mark) {
    line(mark + foreshard::wrapped(text, static_cast<std::size_t>(width_of(mark))));
  }

  void pair(const std::string& name, const std::string& value, const std::string& second, const std::string& other) {
    line(fmt::format("  {}{}    {}{}", pad(name, 20, Align::Left), pad(value, 14, Align::Right), pad(second, 20, Align::Left),
                     pad(other, 14, Align::Right)));
  }

  void rates() {
    const char* unit = header_.counts_tokens ? "tokens/s" : "samples/s";
    line("");
    pair("iteration time", in_time(summary_.iteration_time), unit, with_commas(summary_.tokens_per_s));
    pair("model FLOPs", in_flops(summary_.flops.model), fmt::format("{} per GPU", unit),
         with_commas(summary_.tokens_per_s_per_gpu));
    pair("utilisation (MFU)", in_percent(summary_.flops.model_utilization), "hardware use (HFU)",
         in_percent(summary_.flops.hardware_utilization));
    masked_utilization();
    interval();
  }

  // MFU and HFU count attention over the full square, as papers do; where that is far from what the masks allow, both are said.
  void masked_utilization() {
    constexpr double kFar = 0.03;
    const FlopsRate& flops = summary_.flops;
    if (flops.masked_utilization == 0 || flops.model_utilization - flops.masked_utilization < kFar) return;
    pair("MFU, causal half", in_percent(flops.masked_utilization), "HFU, causal half",
         in_percent(flops.masked_hardware_utilization));
    line("    MFU and HFU count attention over the full square, as Megatron's papers do");
  }

  void interval() {
    if (!summary_.prediction_interval) return;
    const PredictionInterval& it = *summary_.prediction_interval;
    line(fmt::format("  90 % prediction interval   {}", in_time_range(it.low, it.high)));
    wrapped(it.basis, "    ");
    if (it.rates_spread > 0)
      wrapped(fmt::format("matrix products {}; GPUs differ by {}",
                          it.rates_of.empty() ? "by formula, none measured on a GPU like this"
                                              : fmt::format("as measured on {}, not on this GPU", fmt::join(it.rates_of, ", ")),
                          in_percent(it.rates_spread)),
              "    ");
  }

  void share(const std::string& name, double value, int depth) {
    const std::string indent(static_cast<std::size_t>(2 + 2 * depth), ' ');
    line(fmt::format("{}{}  {}", pad(indent + name, 34, Align::Left), pad(in_percent(value), 8, Align::Right),
                     bar(value, kBar, options_.unicode)));
  }

  void shares() {
    const double idle_communication = summary_.bubble.by_cause.empty() ? 0 : cause(BubbleCause::ExposedCommunication);
    const double blocking = summary_.communication.exposed - idle_communication;
    line("");
    line("Where the time goes (share of the iteration, mean over GPUs)");
    share("compute", 1 - summary_.bubble.fraction - blocking, 0);
    share("blocking communication", blocking, 0);
    share("bubble", summary_.bubble.fraction, 0);
    for (int c = 0; c < kBubbleCauses; ++c)
      if (cause(static_cast<BubbleCause>(c)) >= 0.0005)
        share(words_of(static_cast<BubbleCause>(c)), cause(static_cast<BubbleCause>(c)), 1);
    line(fmt::format("  communication: {} exposed, {} hidden behind compute", in_percent(summary_.communication.exposed),
                     in_percent(summary_.communication.hidden)));
  }

  double cause(BubbleCause cause) const {
    const auto c = static_cast<std::size_t>(cause);
    return c < summary_.bubble.by_cause.size() ? summary_.bubble.by_cause[c] : 0;
  }

  void section(const std::string& title, const TextTable& table) {
    if (table.rows.empty()) return;
    line("");
    line(title);
    out_ += table.text(options_.unicode);
  }

  void memory() {
    section("Memory per GPU (GiB)", memory_table(summary_, options_.most_rows));
    if (summary_.memory.empty()) return;
    const bool fits = summary_.fit.margin >= Bytes{}, decides = summary_.verdict.holder.empty();
    line(fmt::format("  {:.2f} GiB per GPU, {:.2f} in reserve; {}{}", in_gib(summary_.fit.capacity),
                     in_gib(summary_.fit.reserve), decides ? "" : "in our own executor: ",
                     fits ? fmt::format("fits with {:.2f} GiB to spare", in_gib(summary_.fit.margin))
                          : fmt::format("{:.2f} GiB too little", in_gib(-summary_.fit.margin))));
    line("  live: peak in use in this run; bound: peak under any timing; arena: what the plan allocates;");
    line("  total: with the framework (context, workspaces, communication library); margin: after reserve");
  }

  // Of link classes whose names differ only in numbers, shows the busiest one, with the number of links of all of them.
  void links() {
    std::vector<LinkUtilization> kinds;
    std::vector<std::string> seen;
    for (const LinkUtilization& link : summary_.links) {
      std::string kind = link.name;
      std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
      const auto known = std::find(seen.begin(), seen.end(), kind);
      if (known != seen.end()) {
        kinds[static_cast<std::size_t>(known - seen.begin())].links += link.links;
        continue;
      }
      seen.push_back(kind);
      kinds.push_back(link);
    }
    TextTable table{.columns = {{"busiest of its kind", Align::Left}, {"links"}, {"used"}, {"", Align::Left}}};
    for (const LinkUtilization& link : kinds) {
      if (table.rows.size() == 6 || link.utilization < 0.00005) break;
      table.rows.push_back(
          {link.name, count_text(link.links), in_percent(link.utilization), bar(link.utilization, 30, options_.unicode)});
    }
    section("Busiest links", table);
  }

  static std::string energy_text(double kilojoules) {
    return (kilojoules < 1000 ? fmt::format("{:.4g}", kilojoules) : with_commas(kilojoules)) + " kJ";
  }

  void cost() {
    std::string text;
    if (summary_.cost_per_million_tokens) text = fmt::format("cost {:.4g}", *summary_.cost_per_million_tokens);
    if (summary_.energy_per_million_tokens_j)
      text += (text.empty() ? "" : ", ") + energy_text(*summary_.energy_per_million_tokens_j / 1e3);
    if (text.empty()) return;
    line("");
    line(fmt::format("Per million {}: {}", header_.counts_tokens ? "tokens" : "samples", text));
  }

  const Summary& summary_;
  const SummaryHeader& header_;
  const TextOptions& options_;
  std::string out_ = {};
};

}  // namespace

std::string summary_text(const Summary& summary, const SummaryHeader& header, const TextOptions& options) {
  return Writer(summary, header, options).write();
}

}  // namespace foreshard
