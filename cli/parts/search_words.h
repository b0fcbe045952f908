// The texts of a candidate's settings in the tables of `search`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/words/text_table.h"
#include "strategy/search/search.h"

namespace foreshard {

std::string zero_text(const Point& point);               // "2:8+": ZeRO stage, GPUs of a group, "+": gathers overlapped
std::string experts_text(const Point& point);            // "8x2": ep, etp
std::string order_text(const Candidate& candidate);      // order of ranks: "tp,cp,dp,role"
std::string recompute_word(const Candidate& candidate);  // a choice per layer is "best", because the list of layers is too long
// The degree: "8"; for stages with degrees of their own its range: "1..8". `of_all`: the degree without such stages.
std::string degree_text(const Candidate& candidate, int of_all, int StageDegrees::*degree);
std::string stages_text(const Candidate& candidate);       // number of pipeline stages: "8"
std::string schedule_word(const Candidate& candidate);     // "-" for one stage, which has one order only
std::string in_host_memory(const OffloadChoice& offload);  // "states, parameters, gradients"; empty: nothing is offloaded
std::string tried_text(
    const Strategy& strategy);  // "parts 2, compress_activations segmented:8", of tried_options(); often empty
// Adds a column with the text of each row's candidate, unless it is empty for all of them.
void add_column(TextTable& table, const std::vector<Candidate>& candidates, const std::string& head,
                const std::function<std::string(const Candidate&)>& text);
// "; 3 failed by an internal error"; "" if none failed.
std::string failed_text(const SearchResult& result);

}  // namespace foreshard
