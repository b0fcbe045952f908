// Document: one result and everything that the views derive from it. It is computed once and never changes, so all views and their
// worker threads share it without a lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/result/memory_timeline.h"
#include "core/result/result.h"
#include "core/result/summary.h"
#include "gui/document/lanes.h"
#include "report/causes/binding.h"
#include "report/causes/bubbles.h"
#include "report/causes/critical_path.h"
#include "report/summary/summarize.h"

namespace foreshard {

struct Document {
  std::string path = {};                      // of the `.result` file; empty: the result was made in memory
  std::string model = {}, cluster_name = {};  // from Plan::origin; empty: not stated there
  std::string strategy_json = {};             // from Plan::origin; empty: not stated there
  std::vector<std::string> settings = {};     // from Plan::origin: changed fields of the model and cluster file, "PATH=VALUE"
  Workload workload = {};
  Result result = {};                   // its memory timeline may have peaks only
  std::optional<Cluster> cluster = {};  // none: its file was not found on this machine, see `remarks`
  // Of a prediction, if the file has them: whether it fits, the interval of its time, and what was said of it.
  std::optional<Verdict> verdict = {};
  std::optional<PredictionInterval> interval = {};
  std::vector<std::string> notes = {};
  Summary summary = {};
  std::vector<Binding> bindings = {};    // [span]
  std::vector<Bubble> pieces = {};       // idle time cut into pieces of one cause each; ordered by (who, begin)
  std::vector<Bubble> bubbles = {};      // whole_bubbles of the pieces: one per wait, ordered alike
  std::vector<ChainStep> critical = {};  // the critical chain, from time 0 to the makespan
  PathTimes critical_times = {};         // time of the critical chain by kind
  Lanes lanes = {};
  std::vector<std::string> remarks = {};  // what cannot be shown and why, one sentence each

  std::span<const Bubble> pieces_of(ClassId who) const;           // all pieces of one class of ranks
  std::span<const Bubble> pieces_of(const Bubble& bubble) const;  // those of one bubble; they sum to its length

  const Plan& plan() const { return result.plan; }
  const Trace& trace() const { return result.trace; }
};

// Reads a `.result` file and derives everything, which may take seconds: call it in a worker thread. Throws Error.
std::shared_ptr<const Document> load_document(const std::string& path);

// The same from a result in memory. Without `cluster`, the cluster that the plan names is used if its file is found. Throws Error.
std::shared_ptr<const Document> make_document(Result result, std::string path = {}, std::optional<Cluster> cluster = {});

}  // namespace foreshard
