// OpGraph: the operators of a model as a DAG, for one micro-batch and one rank of a given sharding. Per operator the FLOPs,
// bytes read and written, parameters, saved activations. Layers repeat, so equal ones are stored once (a LayerGraph).
//
// The backward pass is not in the graph: it follows from it. Going through the operators of a layer in reverse, an operator
// turns the gradients of its outputs into those of its inputs (phase InputGrad) and of its parameters (WeightGrad), reading
// the values in `saved`. A value with several consumers sums their gradients. docs/operators.md has the table per operator;
// in short:
//   input_grad empty (no FLOPs, no traffic)  no kernel: the gradient of the output is that of every input (Add), or there is
//                                            no gradient at all (outputs without needs_grad)
//   weights, but weight_grad empty           one kernel makes both (Phase::Backward): norms, residual biases with dropout
//   communication, forward empty             identity forward; with an output, that is an alias of the input
//   communication, backward empty            the gradient passes unchanged; of an all-gather each rank's own part does
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/units.h"
#include "core/model/model.h"
#include "core/op/expert_load.h"
#include "core/plan/plan.h"

namespace foreshard {

// What the local shapes depend on.
struct Sharding {
  std::int64_t micro_batch = 1, seq = 0;
  int tp = 1, cp = 1;
  bool sequence_parallel = false;
  ContextKind context = ContextKind::AllGather;
  bool flash_attention = true;
  double dropout = 0;
  DType compute = DType::BF16, param = DType::BF16;
  bool eight_bits = false;  // factors of the linear layers, but of the head: docs/decisions/eight-bits.md
  std::int64_t vocab_multiple = 1;
  double kept_tokens = 0;  // share of the tokens whose rows the tensor-parallel ranks sum; 0: all, without choosing
  int ep = 1, etp = 1;     // ranks that share the experts of a layer, and ranks that share each expert
  ExpertLoad expert_load = {};
  double expert_capacity = 0;  // an expert takes so many times its balanced share of a rank's tokens at most; 0: all that choose it
  bool operator==(const Sharding&) const = default;
};

struct Value {  // an activation of the layer, local shard
  std::string name = {};
  std::vector<std::int64_t> dims = {};
  DType dtype = DType::BF16;
  Bytes bytes = {};
  bool needs_grad = true;  // false: token indices, masks, statistics
  bool operator==(const Value&) const = default;
};

struct Parameter {                            // a parameter tensor of the layer
  std::string name = {};                      // without the layer: "qkv.weight"
  std::vector<std::int64_t> shape = {};       // logical
  std::vector<std::int64_t> local = {};       // this rank's part
  int split_dim = -1;                         // the dimension that is cut; -1: replicated
  Kinds split_over = {DenseKind::Tensor};     // ... over these ranks
  std::int64_t blocks = 1;                    // equal blocks along split_dim that are each cut (query, key, value; gate, up)
  std::vector<std::int64_t> block_rows = {};  // sizes of unequal blocks (grouped-query QKV), empty: equal
  std::string init = {};
  Grid grid = Grid::Dense;              // whose data ranks hold it alike
  bool tied = false;                    // shares the tensor of the token embedding (last stage)
  bool sequence_parallel_grad = false;  // replicated, but its gradient is partial over tp (norms under SP, and biases after)
  bool operator==(const Parameter&) const = default;
};

struct Communication {                                        // an operator that communicates
  Kinds over = {DenseKind::Tensor};                           // with the ranks along these axes of its own
  std::optional<CollectiveKind> forward = {}, backward = {};  // empty: identity, costs nothing
  Bytes bytes = {};                                           // full tensor
  Combine combine = Combine::Sum;
  bool activations = false;    // of activations or their gradients: may be sent as codes
  bool ring_exchange = false;  // with the neighbours of a ring instead: forward to the next rank, backward to the one before
  bool operator==(const Communication&) const = default;
};

struct Operator {
  std::string name = {};         // "qkv", "attention", "norm1"
  Operation op = ops::MatMul{};  // of a Communication: ignored
  std::optional<Communication> communication = {};
  std::vector<int> inputs = {}, outputs = {};  // values; a communication with an empty output list works in place on inputs[0]:
                                               // forward on the value, backward on its gradient
  std::vector<int> weights = {};               // parameters
  std::vector<int> saved = {};                 // values its backward reads
  std::vector<Shape> shapes = {};              // as the operator's header says
  OpWork forward = {}, input_grad = {}, weight_grad = {};
  std::string module = {};        // what --recompute selects: "attention", "norm", "activation", "mlp", "dropout"
  bool always_recompute = false;  // never saved, redone in the backward (sequence-parallel all-gather)
  bool operator==(const Operator&) const = default;
};

struct LayerGraph {       // one layer: operators in a topological order
  std::string kind = {};  // "embedding", "decoder", "encoder", "head", "conv"
  std::vector<Value> values = {};
  std::vector<Parameter> parameters = {};
  std::vector<Operator> operators = {};
  int input = -1, output = -1;  // values that cross the layer's border; -1: none (first, loss)
  bool operator==(const LayerGraph&) const = default;
};

struct OpGraph {
  std::vector<LayerGraph> kinds = {};
  struct Layer {
    std::string name = {};  // "layers.17"
    int kind = 0;
    bool counted = false;  // one of the layers that --layer-split and recompute full:N count
    bool operator==(const Layer&) const = default;
  };
  std::vector<Layer> layers = {};  // a chain: layer i's output is layer i+1's input
  bool operator==(const OpGraph&) const = default;
};

// Throws Error for shapes that cannot be sharded so (heads not divisible by tp, ...): lower checks first.
OpGraph build_op_graph(const Model& model, const Sharding& sharding);

// Model FLOPs of one sample, forward + backward, attention not halved for causality (the convention of Megatron's papers).
Flops model_flops_per_sample(const Model& model, std::int64_t seq, std::int64_t vocab_multiple = 1);

}  // namespace foreshard
