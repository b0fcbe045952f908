// Words of a candidate in the tables of `search`.
#pragma once

#include <string>

#include "strategy/search/search.h"

namespace foreshard {

std::string zero_text(const Point& point);               // "2:8+": stage, GPUs of a group, gathers overlapped
std::string experts_text(const Point& point);            // "8x2": ep, etp
std::string order_text(const Candidate& candidate);      // of ranks: "tp,cp,dp,role"
std::string recompute_word(const Candidate& candidate);  // a list of all layers is "best"
// "8", or of stages with degrees of their own "1..8".
std::string degree_text(const Candidate& candidate, int of_all, int StageDegrees::*degree);
std::string stages_text(const Candidate& candidate);
std::string schedule_word(const Candidate& candidate);     // "-" of one stage, which has one order
std::string in_host_memory(const OffloadChoice& offload);  // "states, parameters, gradients"; empty: nothing is there

}  // namespace foreshard
