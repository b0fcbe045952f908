// Document: one result and everything that the views read of it, made once and then never changed, so that all views and
// their workers share it without a lock.
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
  std::string path = {};                      // of the `.result` file; empty: made in memory
  std::string model = {}, cluster_name = {};  // of Plan::origin; empty: not said there
  std::string strategy_json = {};             // of Plan::origin; empty: not said there
  std::vector<std::string> settings = {};     // likewise, of fields of the model's and the cluster's file
  Workload workload = {};
  Result result = {};                   // its memory curves may have peaks only
  std::optional<Cluster> cluster = {};  // none: not found on this machine, see `remarks`
  Summary summary = {};
  std::vector<Binding> bindings = {};    // [span]
  std::vector<Bubble> pieces = {};       // of idle time, one cause each; ordered by (who, begin)
  std::vector<Bubble> bubbles = {};      // whole_bubbles of the pieces: one per wait, in the same order
  std::vector<ChainLink> critical = {};  // from 0 to the makespan
  PathTimes critical_times = {};         // what the critical chain is made of
  Lanes lanes = {};
  std::vector<std::string> remarks = {};  // what could not be shown, and why; one sentence each

  std::span<const Bubble> pieces_of(ClassId who) const;
  std::span<const Bubble> pieces_of(const Bubble& bubble) const;  // sum to its length

  const Plan& plan() const { return result.plan; }
  const Trace& trace() const { return result.trace; }
};

// Takes as long as reading the file: call it in a worker. Throws Error.
std::shared_ptr<const Document> load_document(const std::string& path);

// The same from a result in memory. `cluster` none: the one that the plan names, when it is found. Throws Error.
std::shared_ptr<const Document> make_document(Result result, std::string path = {}, std::optional<Cluster> cluster = {});

}  // namespace foreshard
