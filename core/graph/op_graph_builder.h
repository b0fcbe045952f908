// LayerBuilder builds one LayerGraph operator by operator. Every operator that it adds has its FLOPs and traffic per phase, as
// docs/operators.md states them. Values and parameters are ints: indices of LayerGraph::values and LayerGraph::parameters. Used only by the
// op_graph_*.cpp files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/op_graph.h"

namespace foreshard {

using Dims = std::vector<std::int64_t>;

// A linear layer y[.., out] = x[.., in] w[out, in]^T (+ bias). Sizes are those of the whole layer; `split` says how the tensor-parallel
// ranks share w.
struct Linear {
  std::string name = {};
  std::string module = {};
  std::int64_t in = 0, out = 0;
  // 0: rows of w (Megatron's column-parallel), 1: columns of w (row-parallel), -1: replicated.
  int split = -1;
  // Added by the same kernel; not with split 1, where the bias has to follow the reduction.
  bool bias = false;
  std::vector<std::int64_t> block_rows = {};  // sizes of the blocks of `out`, each of which is cut; empty: one block
  std::string init = "normal(0.02)";
  std::string weight = {}, bias_name = {};  // parameter names; empty: "<name>.weight", "<name>.bias"
  bool tied = false;                        // Parameter::tied
  bool first_token = false;                 // x is only the first token of each sample
  bool shared = false;                      // several linear layers share this weight: the parameter is added once
  bool adapter = false;                     // one of the two products of an adapter
};

// The attention of one rank: sequences, tokens, heads and elements of a head. `queries` and `keys` differ under context parallelism.
struct AttentionShape {
  std::int64_t batch = 1, queries = 0, keys = 0, heads = 0, kv_heads = 0, dim = 0;
  bool causal = true;
  // Its settings scale, score_cap, window, chunk, sinks and value_dim; others are set by the builder.
  ops::Attention variant = {};

  std::int64_t values() const { return variant.value_dim > 0 ? variant.value_dim : dim; }
};

class LayerBuilder {
 public:
  LayerBuilder(std::string kind, const Sharding& sharding, const SequenceSplit& split = {});

  // Adds a value of these local dimensions; without `dtype`, of the compute format.
  int value(std::string name, Dims dims, std::optional<DType> dtype = {}, bool needs_grad = true);
  // Adds a parameter that every tensor-parallel rank holds whole.
  int replicated(std::string name, Dims shape, std::string init);
  int parameter(Parameter p);
  int shared(Parameter p);  // the parameter of this name if the layer has one, else adds it; the prefix is not used
  // The names of all parameters, values and operators added from here on begin with `prefix`.
  void begin_part(std::string prefix) { prefix_ = std::move(prefix); }
  // Adds an operator. Fills in its saved values, FLOPs and traffic from its operation, operands and shapes.
  Operator& add(Operator op);
  const Value& at(int value) const { return layer_.values.at(static_cast<std::size_t>(value)); }
  Bytes bytes(int value) const { return at(value).bytes; }
  const SequenceSplit& split() const { return split_; }  // how context-parallel ranks share the sequence
  DType gemm_type() const { return sharding_.compute; }
  DType linear_type(const Linear& what) const;  // the format that this linear layer multiplies in
  bool freezes() const { return sharding_.lora.any(); }
  DType statistics_type() const;  // fp32, or fp64 when computing in fp64
  bool tensor_parallel() const { return sharding_.tp > 1; }
  bool sequence_parallel() const { return sharding_.tp > 1 && sharding_.sequence_parallel; }

  // Each of the following adds an operator (or several) and returns the value of its result.
  // Several outputs lie side by side in the columns of y.
  std::vector<int> linear(const Linear& what, int x, const std::vector<Dims>& outputs, std::vector<std::string> names);
  int linear(const Linear& what, int x, Dims output);
  int norm(const std::string& name, const Transformer& model, int x);
  // ops::HeadNorm (core/op/norm.h): `x` are its inputs, the query and key heads and, if there are key heads, the values. Adds the
  // parameters "q_norm.weight" and "k_norm.weight".
  int head_norm(const std::string& name, const ops::HeadNorm& what, const std::vector<int>& x, const std::string& output);
  // The keys and values of all heads; core/op/latent_heads.h.
  int latent_heads(const ops::LatentHeads& what, int up, int shared);
  int activation(const std::string& name, ActivationKind kind, int x, Dims output);
  // skip + dropout(x + bias). `bias`: the row-parallel layer before has a bias, named `bias_name`, which is added here.
  int residual(const std::string& name, int x, int skip, bool bias, const std::string& bias_name);
  // x itself if there is no dropout. `split`: the positions of x's rows if they are not those of split(), as for attention maps.
  int dropout(const std::string& name, const std::string& module, int x, std::optional<SequenceSplit> split = {});
  // Attention with context parallelism. Operands: {qkv}, or {q, kv} if keys and values are sent between ranks. Returns the context.
  int context_attention(const AttentionShape& shape, const std::vector<int>& qkv);
  int sum(const std::string& name, int x, int y);
  int scale(const std::string& name, double factor, int x);  // x itself if factor is 1
  int cap(const std::string& name, double cap, int x);       // cap tanh(x / cap); x itself if cap is 0

  // Tensor parallelism: the communication before a column-parallel linear layer and after a row-parallel one; x itself if tp is 1.
  // `shared`: other operators read x, too.
  int column_input(const std::string& name, int x, bool shared);
  int row_output(const std::string& name, int x);
  int gather_columns(const std::string& name, int x);  // all features of rows [.., features] of which each tp rank has a part
  void reduce_in_place(const std::string& name, int x, Combine combine);  // over the tp ranks; for values without gradient
  // Chooses from attention probabilities the tokens whose rows the row-parallel layers added later sum (core/op/token_rows.h). Does nothing
  // if Sharding::kept_tokens is 0 or tp is 1.
  void keep_tokens(int probabilities);

  Operator& communicate(std::string name, Communication what, std::vector<int> inputs, std::vector<int> outputs);

  LayerGraph finish(int input, int output);  // the layer; its input and output value, -1: none

 private:
  bool adapts(const Linear& what) const;  // whether the linear layer has an adapter
  // Adds the adapter of the linear layer from x to y, its results, and returns the sums of both.
  std::vector<int> adapted(const Linear& what, int x, const std::vector<int>& y);
  void settle_gradients(Operator& op);  // with frozen parameters: which values have gradients, and what the backward reads
  std::int64_t ranks(const Kinds& kinds) const;  // the product of the degrees of these kinds
  int attention(const AttentionShape& shape, const std::vector<int>& qkv, const SequenceSplit& split);  // flash or unfused
  // The operator of this rank; takes the next dropout site.
  ops::Attention attention_of(const AttentionShape& shape, const SequenceSplit& split);
  int unfused_attention(const AttentionShape& shape, const std::vector<int>& qkv, const SequenceSplit& split);
  int context_gather(const std::string& name, int x);  // gathers keys and values of all context-parallel ranks
  int ring_attention(const AttentionShape& shape, int q, int kv);
  int head_attention(const AttentionShape& shape, int qkv);
  // All-to-all that gives this rank all positions of a part of the heads (Ulysses); what.join: the inverse.
  int exchange_heads(const std::string& name, int x, const ops::HeadParts& what, const Dims& dims);
  int kept_rows(const std::string& name, int x, bool takes);  // ops::TakeRows or ops::PutRows of the kept tokens
  ops::Dropout dropout_at(const Dims& dims);                  // takes the next site

  Sharding sharding_;
  SequenceSplit split_;
  LayerGraph layer_;
  std::string prefix_ = {};
  int sites_ = 0;            // dropout sites (ops::Dropout::site) taken so far
  int kept_ = -1;            // the value with the indices of the kept tokens; -1: all tokens are kept
  std::int64_t tokens_ = 0;  // number of tokens of a sample, set if some are kept
};

// Adds the cross-entropy over the last dimension of `logits`. The softmax (of statistics_type) is saved for the backward.
void cross_entropy(LayerBuilder& layer, int logits, const std::string& name, const ops::CrossEntropy& op);

std::string number(double value);  // with up to 12 digits, as in "normal(0.02)"

}  // namespace foreshard
