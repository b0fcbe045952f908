// Choices: what a person has chosen in the strategy panel. What is not chosen is left to the program ("Auto").
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/json/json.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"

namespace foreshard {

struct Choices {
  std::string model = {}, cluster = {};              // names or files
  int nodes = 0;                                     // 0: as the cluster says
  std::map<std::string, std::string> strategy = {};  // path of an option -> its value as typed; absent: Auto
  std::vector<std::string> settings = {};            // "cluster.fabric.oversubscription=2", "model.n_layer=24"
  bool operator==(const Choices&) const = default;
};

// GPT-3 175B on 1024 A100s, as the README trains it: what the first start shows.
Choices worked_example();
// Of another model: what was set of the one before (settings that begin with "model.") goes.
Choices with_model(Choices choices, const std::string& model);

// "model" or "cluster" where its name is neither of a file nor of one that is shipped; else empty.
std::string unknown_name(const Choices& choices);

// The words that make the job on a command line: --model NAME --cluster NAME --set strategy.tp=8 ... `leave_out`: paths of
// options that are not said.
std::vector<std::string> job_words(const Choices& choices, const std::vector<std::string>& leave_out = {});
// The same as one line for a shell: "foreshard simulate --model ... --tp 8".
std::string command_line(const std::string& verb, const Choices& choices);

// What is wrong with a value, in one sentence; empty: nothing, or the option is not known here.
std::string complaint_about(const std::string& path, const std::string& value);

// The job that the choices name, without a child process. Throw Error.
Model model_of(const Choices& choices);
Cluster cluster_of(const Choices& choices);
Strategy strategy_of(const Choices& choices);

// What a strategy has that is not the default.
std::map<std::string, std::string> chosen_in(const Strategy& strategy);

// The path of the option that a sentence of the engine speaks of: the one in `last_edited` when it is mentioned, else the
// first that is; empty: none. "tp 7 x cp 1 x pp 16 = 112 does not divide ..." speaks of tp, cp and pp.
std::string option_meant(const std::string& reason, const std::string& last_edited, const std::vector<std::string>& paths);

// A change that the engine proposes: "--global-batch 1528", "--recompute full: 41.3 GiB on stage 0 of 80.0 GiB"; two together
// with " and ". False: it is no change of options.
bool apply_remedy(Choices& choices, const std::string& remedy);

void write_choices(JsonWriter& json, const Choices& choices);
Choices read_choices(const JsonReader& json);  // throws Error

}  // namespace foreshard
