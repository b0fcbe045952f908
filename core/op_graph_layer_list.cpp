#include "core/op_graph_layer_list.h"

#include "core/error.h"

namespace foreshard {

OpGraph layer_list_graph(const LayerList&, const Sharding&) {
  throw Error("model", "shape", "layer list", "a transformer (layer lists follow)");
}
Flops layer_list_flops(const LayerList&) { return {}; }

}  // namespace foreshard
