// Builds one LayerGraph operator by operator; every call adds an operator with its FLOPs and traffic per phase, as
// docs/operators.md states them. Used only by the op_graph_*.cpp files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/op_graph.h"

namespace foreshard {

using Dims = std::vector<std::int64_t>;

// A linear layer y[.., out] = x[.., in] w[out, in]^T (+ bias). Sizes are logical; `split` is the tensor-parallel cut of
// w.
struct Linear {
  std::string name = {};
  std::string module = {};
  std::int64_t in = 0, out = 0;
  int split = -1;                             // 0: columns of the result (Megatron's column-parallel), 1: rows, -1: replicated
  bool bias = false;                          // in the epilogue; refused for split 1, where it has to follow the reduction
  std::vector<std::int64_t> block_rows = {};  // separately cut blocks of `out`; empty: one
  std::string init = "normal(0.02)";
  std::string weight = {}, bias_name = {};  // parameter names; empty: "<name>.weight", "<name>.bias"
  bool tied = false;
  bool first_token = false;  // reads the first token of each sample only
  bool shared = false;       // a layer may read the weight several times: it is the parameter of this name
};

// Heads of this rank and the two sequence lengths (they differ under context parallelism).
struct AttentionShape {
  std::int64_t batch = 1, queries = 0, keys = 0, heads = 0, kv_heads = 0, dim = 0;
  bool causal = true;
  ops::Attention variant = {};  // what is special: scale, cap, window, chunk, sinks, size of a value head

  std::int64_t values() const { return variant.value_dim > 0 ? variant.value_dim : dim; }
};

class LayerBuilder {
 public:
  LayerBuilder(std::string kind, const Sharding& sharding, const SequenceSplit& split = {});

  int value(std::string name, Dims dims, std::optional<DType> dtype = {}, bool needs_grad = true);
  int replicated(std::string name, Dims shape, std::string init);  // a parameter outside the tensor-parallel regions
  int parameter(Parameter p);
  int shared(Parameter p);  // the one of this name if the layer has it, without the prefix
  // Names of parameters, values and operators that follow begin with it.
  void begin_part(std::string prefix) { prefix_ = std::move(prefix); }
  // Saved values, FLOPs and traffic follow from the operator, its operands and its shapes.
  Operator& add(Operator op);
  const Value& at(int value) const { return layer_.values.at(static_cast<std::size_t>(value)); }
  Bytes bytes(int value) const { return at(value).bytes; }
  const SequenceSplit& split() const { return split_; }  // over the context-parallel ranks
  DType gemm_type() const { return sharding_.compute; }
  DType linear_type(const Linear& what) const;
  DType statistics_type() const;  // fp32, or fp64 when computing in fp64
  bool tensor_parallel() const { return sharding_.tp > 1; }
  bool sequence_parallel() const { return sharding_.tp > 1 && sharding_.sequence_parallel; }

  std::vector<int> linear(const Linear& what, int x, const std::vector<Dims>& outputs, std::vector<std::string> names);
  int linear(const Linear& what, int x, Dims output);
  int norm(const std::string& name, const Transformer& model, int x);
  // Of rows of heads, and of the values that pass by them; see core/op/norm.h. Parameters: "q_norm.weight", "k_norm.weight".
  int head_norm(const std::string& name, const ops::HeadNorm& what, const std::vector<int>& x, const std::string& output);
  int latent_heads(const ops::LatentHeads& what, int up, int shared);  // keys and values of all heads
  int activation(const std::string& name, ActivationKind kind, int x, Dims output);
  // x + residual with dropout and the bias of the row-parallel layer before it.
  int residual(const std::string& name, int x, int skip, bool bias, const std::string& bias_name);
  // x itself when the rate is 0. `split`: of maps under context parallelism; else that of the layer's rows.
  int dropout(const std::string& name, const std::string& module, int x, std::optional<SequenceSplit> split = {});
  // The context, over the context-parallel ranks. Operands: qkv, or q and kv where keys go between ranks.
  int context_attention(const AttentionShape& shape, const std::vector<int>& qkv);
  int sum(const std::string& name, int x, int y);
  int scale(const std::string& name, double factor, int x);  // x itself for 1
  int cap(const std::string& name, double cap, int x);       // x itself for 0

  // Tensor parallelism: what a column-parallel layer reads, and what follows a row-parallel one.
  int column_input(const std::string& name, int x, bool shared);
  int row_output(const std::string& name, int x);
  int gather_columns(const std::string& name, int x);  // of rows [.., features]: all features, of which each tp rank has a part
  void reduce_in_place(const std::string& name, int x, Combine combine);  // over tp; no gradient
  void keep_tokens(int probabilities);  // whose rows the row-parallel layers sum from then on (core/op/token_rows.h)

  Operator& communicate(std::string name, Communication what, std::vector<int> inputs, std::vector<int> outputs);

  LayerGraph finish(int input, int output);

 private:
  std::int64_t ranks(const Kinds& kinds) const;  // of these kinds, as far as parameters are cut over them
  int attention(const AttentionShape& shape, const std::vector<int>& qkv, const SequenceSplit& split);  // flash or unfused
  ops::Attention attention_of(const AttentionShape& shape, const SequenceSplit& split);  // with the next site of a dropout
  int unfused_attention(const AttentionShape& shape, const std::vector<int>& qkv, const SequenceSplit& split);
  int context_gather(const std::string& name, int x);  // keys and values of all context-parallel ranks
  int ring_attention(const AttentionShape& shape, int q, int kv);
  int head_attention(const AttentionShape& shape, int qkv);
  int deal_heads(const std::string& name, int x, const ops::HeadParts& what, const Dims& dims);  // or collect them: join
  int kept_rows(const std::string& name, int x, bool takes);  // takes them out of all, or puts them back
  ops::Dropout dropout_at(const Dims& dims);                  // the next site

  Sharding sharding_;
  SequenceSplit split_;
  LayerGraph layer_;
  std::string prefix_ = {};
  int sites_ = 0;            // dropout places so far
  int kept_ = -1;            // the value that says which tokens are kept; -1: all
  std::int64_t tokens_ = 0;  // of a sample, where some are kept
};

// Loss over the last dimension of `logits`; the softmax (fp32) is kept for the backward.
void cross_entropy(LayerBuilder& layer, int logits, const std::string& name, const ops::CrossEntropy& op);

std::string number(double value);  // as in initialisations, "normal(0.02)"

}  // namespace foreshard
