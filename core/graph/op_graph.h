// OpGraph: the operators of a model as a DAG, for one micro-batch on one rank of a given sharding. Each operator has its FLOPs, memory
// traffic, parameters and saved activations. Equal layers are stored once, as one LayerGraph.
//
// The backward pass is not stored: it follows from the forward. The backward visits the operators of a layer in reverse order. Each
// operator turns the gradients of its outputs into those of its inputs (phase InputGrad) and of its parameters (phase WeightGrad) and
// reads the values in `saved`. The gradient of a value is the sum over its consumers. docs/operators.md has the table per operator; in
// short:
//   input_grad empty (no FLOPs, no traffic)  no kernel: the gradient of the output is that of every input (Add), or there is
//                                            no gradient at all (outputs without needs_grad)
//   weights, but weight_grad empty           one kernel makes both gradients (Phase::Backward): norms, residual biases with dropout;
//                                            if `frozen`, that of the input only (Phase::InputGrad)
//   communication, forward empty             forward is the identity; an output, if there is one, is an alias of the input
//   communication, backward empty            the gradient passes unchanged; after an all-gather, each rank keeps its own part of it
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/units.h"
#include "core/model/model.h"
#include "core/op/adapters.h"
#include "core/op/dispatcher.h"
#include "core/op/expert_load.h"
#include "core/plan/plan.h"

namespace foreshard {

// The parts of a strategy that decide the shapes of one rank's tensors, and the kernels.
struct Sharding {
  std::int64_t micro_batch = 1, seq = 0;  // sequences; tokens of a sequence
  int tp = 1, cp = 1;                     // tensor- and context-parallel degrees
  bool sequence_parallel = false;
  ContextKind context = ContextKind::AllGather;
  bool flash_attention = true;
  double dropout = 0;  // probability; 0: no dropout operators
  DType compute = DType::BF16, param = DType::BF16;
  std::optional<DType> factors = {};  // the code of the factors of linear layers except the head (docs/decisions/eight-bits.md)
  std::int64_t vocab_multiple = 1;    // the vocabulary is padded to a multiple of this
  double kept_tokens = 0;  // share of the tokens whose rows the tensor-parallel ranks sum (core/op/token_rows.h); 0: all
  int ep = 1, etp = 1;     // expert-parallel degree, and expert-tensor-parallel degree (ranks that share each expert)
  ExpertLoad expert_load = {};
  // Capacity factor: of a rank's tokens an expert takes at most this times its balanced share; 0: no limit.
  double expert_capacity = 0;
  bool expert_unpadded =
      false;  // with a capacity: only rows of tokens are sent; false: rows of an expert are padded to its capacity
  Dispatcher dispatcher = Dispatcher::AllToAll;
  Adapters lora = {};       // if there are any, all other parameters are frozen
  std::int64_t packed = 0;  // tokens of each of the sequences that a row of `seq` tokens holds; 0: one sequence
  int expert_nodes = 1;     // nodes of an expert group, if tokens are sent to nodes first
  bool operator==(const Sharding&) const = default;
};

struct Value {  // an activation of the layer; dims and bytes of this rank's part
  std::string name = {};
  std::vector<std::int64_t> dims = {};
  DType dtype = DType::BF16;
  Bytes bytes = {};
  bool needs_grad = true;  // false: token indices, masks, statistics
  bool operator==(const Value&) const = default;
};

struct Parameter {                         // a parameter tensor of the layer
  std::string name = {};                   // without the layer: "qkv.weight"
  std::vector<std::int64_t> shape = {};    // of the whole tensor
  std::vector<std::int64_t> local = {};    // of this rank's part
  int split_dim = -1;                      // the dimension that is cut; -1: replicated
  Kinds split_over = {DenseKind::Tensor};  // the axes over which it is cut
  // The number of equal blocks of split_dim, each of which is cut (query, key, value; gate, up).
  std::int64_t blocks = 1;
  std::vector<std::int64_t> block_rows = {};  // sizes of unequal blocks (grouped-query QKV); empty: equal
  std::string init = {};                      // "normal(0.02)", "zeros", "ones"
  Grid grid = Grid::Dense;                    // data-parallel replicas of it lie along the data axes of this grid
  bool tied = false;                          // it is the tensor of the token embedding again (head, multi-token prediction)
  bool frozen = false;                        // it is read only: no gradient, no optimizer states, no update
  bool operator==(const Parameter&) const = default;
};

struct Communication {                                        // what an operator that communicates does
  Kinds over = {DenseKind::Tensor};                           // between the ranks along axes of these kinds
  std::optional<CollectiveKind> forward = {}, backward = {};  // empty: identity, at no cost
  Bytes bytes = {};                                           // of the full tensor, as Collective::bytes
  Combine combine = Combine::Sum;
  std::optional<Algorithm> algorithm = {};  // empty: as the strategy says
  bool activations =
      false;  // sends activations forth and their gradients back, or the other way round, which may be compressed
  // Whether the forward sends rows of tokens to their experts, and the backward gradients of results: these may be compressed, too.
  bool to_experts = false, from_experts = false;
  // No collective, but exchanges in a ring: the forward sends to the next rank, the backward to the previous one.
  bool ring_exchange = false;
  bool operator==(const Communication&) const = default;
};

struct Operator {
  std::string name = {};         // "qkv", "attention", "norm1"
  Operation op = ops::MatMul{};  // ignored if there is a `communication`
  std::optional<Communication> communication = {};
  // Indices of LayerGraph::values. A communication without outputs works in place on inputs[0]: the forward on the value, the backward on
  // its gradient.
  std::vector<int> inputs = {}, outputs = {};
  std::vector<int> weights = {};   // indices of LayerGraph::parameters
  std::vector<int> saved = {};     // values that its backward reads
  std::vector<Shape> shapes = {};  // as the header of the operator (core/op) says
  OpWork forward = {}, input_grad = {}, weight_grad = {};
  std::string module = {};        // what --recompute selects: "attention", "norm", "activation", "mlp", "dropout"
  bool always_recompute = false;  // its outputs are never saved: the backward runs it again (sequence-parallel all-gather)
  bool frozen = false;            // none of its weights has a gradient: the backward computes those of its inputs at most
  bool operator==(const Operator&) const = default;
};

struct LayerGraph {       // one layer: operators in a topological order
  std::string kind = {};  // "embedding", "decoder", "encoder", "head", "conv"
  std::vector<Value> values = {};
  std::vector<Parameter> parameters = {};
  std::vector<Operator> operators = {};
  int input = -1, output = -1;  // the values that come from the layer before and go to the next; -1: none (first layer, loss)
  bool operator==(const LayerGraph&) const = default;
};

struct OpGraph {
  std::vector<LayerGraph> kinds = {};  // the distinct layers
  struct Layer {
    std::string name = {};  // "layers.17"
    int kind = 0;           // index of `kinds`
    bool counted = false;   // one of the layers that --layer-split and recompute full:N count
    bool operator==(const Layer&) const = default;
  };
  std::vector<Layer> layers = {};  // a chain: layer i's output is layer i+1's input
  bool operator==(const OpGraph&) const = default;
};

// Throws Error for a model that cannot be sharded in this way (heads not divisible by tp, ...). `lower` checks this before it calls.
OpGraph build_op_graph(const Model& model, const Sharding& sharding);

// Model FLOPs of one sample, forward + backward, attention not halved for causality (the convention of Megatron's papers).
// With adapters, frozen products count without their weight gradients; with `packed` (as in Sharding), attention counts inside sequences.
Flops model_flops_per_sample(const Model& model, std::int64_t seq, std::int64_t vocab_multiple = 1, const Adapters& lora = {},
                             std::int64_t packed = 0);

// The same, but attention counts only the pairs of a query and a key that the masks allow: half of them under a causal mask. This is what fused
// attention kernels compute.
Flops masked_flops_per_sample(const Model& model, std::int64_t seq, std::int64_t vocab_multiple = 1, const Adapters& lora = {},
                              std::int64_t packed = 0);

// Elements of all adapters of a model.
std::int64_t adapter_elements(const Model& model, const Adapters& lora);

}  // namespace foreshard
