// Choices: what the user has set in the strategy panel. The program decides every option that is not set ("Auto").
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
  std::string model = {}, cluster = {};              // names of shipped ones, or paths of files
  int nodes = 0;                                     // 0: the number of the cluster file
  std::map<std::string, std::string> strategy = {};  // path of an option -> its value as typed; absent: Auto
  std::vector<std::string> settings = {};            // changed fields: "cluster.fabric.oversubscription=2", "model.n_layer=24"
  bool operator==(const Choices&) const = default;
};

// GPT-3 175B on 1024 A100s, as the README trains it: what the first start shows.
Choices worked_example();
// The choices with another model. Settings that begin with "model." are removed: they changed the former model.
Choices with_model(Choices choices, const std::string& model);

// "model" or "cluster" if that name is neither a file nor shipped with the program; empty if both are known.
std::string unknown_name(const Choices& choices);

// The arguments that give the choices to the program: --model NAME --cluster NAME --set strategy.tp=8 ... `leave_out`: paths of
// options to omit.
std::vector<std::string> job_words(const Choices& choices, const std::vector<std::string>& leave_out = {});
// The same as one line for a shell: "foreshard simulate --model ... --tp 8".
std::string command_line(const std::string& verb, const Choices& choices);

// What is wrong with the value of the option at `path`, in one sentence; empty: it is valid, or this program does not know the option.
std::string complaint_about(const std::string& path, const std::string& value);

// The model, cluster and strategy that the choices describe, read in this process. They throw Error.
Model model_of(const Choices& choices);
Cluster cluster_of(const Choices& choices);
Strategy strategy_of(const Choices& choices);

// Every option of the strategy whose value is not the default: path -> value as text.
std::map<std::string, std::string> chosen_in(const Strategy& strategy);

// The path (one of `paths`) of the option that an error message of the program names. If it names several: `last_edited` if that is
// one of them, else the one named first. Empty: it names none. "tp 7 x cp 1 x pp 16 = 112 does not divide ..." names tp, cp and pp.
std::string option_meant(const std::string& reason, const std::string& last_edited, const std::vector<std::string>& paths);

// Applies a change that the program proposes: "--global-batch 1528", or "--recompute full: 41.3 GiB on stage 0 of 80.0 GiB", of which the
// text after the colon is ignored. False, with `choices` unchanged: the text is not such a change.
bool apply_remedy(Choices& choices, const std::string& remedy);

void write_choices(JsonWriter& json, const Choices& choices);
Choices read_choices(const JsonReader& json);  // throws Error

}  // namespace foreshard
