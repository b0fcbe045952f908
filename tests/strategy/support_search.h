// Small spaces for tests of search: few layers on few GPUs.
#pragma once

#include <string>

#include "core/cluster_file/cluster_file.h"
#include "core/json/json.h"
#include "core/json/json_edit.h"
#include "strategy/search/search.h"

namespace foreshard {

// The workstation with fewer GPUs.
inline Cluster workstation(int gpus) {
  const std::string path = cluster_file("workstation-rtx4090").path;
  return parse_cluster(with_json_value(read_file(path), "gpus_per_node", std::to_string(gpus), "test"), path);
}

inline Model layers(const char* name, int count) {
  Model model = load_model(name);
  std::get<Transformer>(model.shape).layers = count;
  return model;
}

inline SearchOptions options(std::int64_t batch, std::int64_t seq) {
  SearchOptions options;
  options.base.batch.global = batch;
  options.base.batch.seq = seq;
  options.threads = 1;
  options.offload = false;  // of its own: search_offload_test
  options.noise = 0;        // the winner is the fastest, however it looks
  return options;
}

}  // namespace foreshard
