#include "cli/interval.h"

#include "core/data_path.h"
#include "core/json.h"
#include "report/prediction_interval.h"

namespace foreshard {

PredictionInterval interval_of(const Cluster& cluster, const Strategy& strategy, Seconds predicted) {
  const std::string path = data_directory() + "/accuracy/residuals.json";
  const Gpu& gpu = gpu_of(cluster, cluster.nodes.front().shape.gpu);
  return prediction_interval(parse_spreads(read_file(path), path), gpu.architecture, strategy.framework, predicted);
}

}  // namespace foreshard
