// The first and the last layer of a transformer: embeddings, and the vocabulary projection with its loss.
#include <utility>

#include "core/graph/op_graph_transformer.h"

namespace foreshard {

namespace {

// Looks up the tokens `ahead` positions later. With 0 it is the first layer, which owns the table.
int token_lookup(LayerBuilder& layer, const LocalTransformer& t, std::int64_t ahead = 0) {
  const Transformer& m = t.model;
  const std::int64_t tokens = t.batch * t.seq, rows = t.vocab / t.sharding.tp;
  Operator op = {
      .name = "token", .op = ops::TokenEmbedding{.vocab = m.vocab, .split = t.split, .ahead = ahead}, .module = "embedding"};
  op.outputs = {layer.value("token_out", {t.batch, t.seq, m.hidden}),
                layer.value("tokens", {t.batch, t.seq}, DType::I64, false)};
  Parameter table = {.name = "token.weight", .shape = {t.vocab, m.hidden}, .split_dim = 0, .init = "normal(0.02)"};
  table.tied = ahead > 0;
  op.weights = {layer.shared(std::move(table))};
  op.shapes = {{.dims = {tokens, m.hidden, rows}, .dtype = layer.at(op.outputs[0]).dtype}};
  return layer.add(std::move(op)).outputs[0];
}

// Position and segment rows added to the token embedding.
int add_positions(LayerBuilder& layer, const LocalTransformer& t, int x) {
  const Transformer& m = t.model;
  const Value in = layer.at(x);
  const bool positions = m.positions == PositionKind::Learned, types = m.token_types > 0;
  if (!positions && !types) return x;
  Operator op = {
      .name = "position",
      .op =
          ops::PositionEmbedding{
              .positions = positions, .types = types, .sequence_parallel = layer.sequence_parallel(), .split = t.split},
      .inputs = {x},
      .module = "embedding"};
  if (positions) op.weights.push_back(layer.replicated("position.weight", {m.max_positions, m.hidden}, "normal(0.02)"));
  if (types) op.weights.push_back(layer.replicated("token_type.weight", {m.token_types, m.hidden}, "normal(0.02)"));
  op.outputs = {layer.value("embedded", in.dims, in.dtype)};
  op.shapes = {{.dims = in.dims, .dtype = in.dtype}};
  return layer.add(std::move(op)).outputs[0];
}

// BERT's next-sentence head: dense + tanh on the first token, two classes.
void next_sentence(LayerBuilder& layer, const LocalTransformer& t, int x) {
  const std::int64_t h = t.model.hidden;
  int y =
      layer.linear({.name = "pooler", .module = "head", .in = h, .out = h, .bias = true, .first_token = true}, x, {t.batch, h});
  Operator tanh = {.name = "pooler_tanh",
                   .op = ops::Activation{.function = ops::Activation::Function::Tanh},
                   .inputs = {y},
                   .module = "activation"};
  tanh.outputs = {layer.value("pooled", {t.batch, h})};
  tanh.shapes = {{.dims = {t.batch, h}, .dtype = layer.at(y).dtype}};
  y = layer.add(std::move(tanh)).outputs[0];
  y = layer.linear({.name = "next_sentence", .module = "head", .in = h, .out = 2, .bias = true}, y, {t.batch, 2});
  cross_entropy(layer, y, "next_sentence_loss", {.target = ops::CrossEntropy::Target::NextSentence, .classes = 2});
}

int masked_language_transform(LayerBuilder& layer, const LocalTransformer& t, int x) {
  const Transformer& m = t.model;
  const Dims dims = layer.at(x).dims;
  int y = layer.linear({.name = "transform", .module = "head", .in = m.hidden, .out = m.hidden, .bias = true}, x, dims);
  y = layer.activation("transform_activation", m.activation, y, dims);
  return layer.norm("transform_norm", m, y);
}

// Vocabulary-parallel loss: maxima and sums are all-reduced over tp; every rank saves the exponentials of its part of the
// vocabulary.
void parallel_cross_entropy(LayerBuilder& layer, const LocalTransformer& t, int logits, const ops::CrossEntropy& of) {
  using Piece = ops::CrossEntropy::Piece;
  const Value in = layer.at(logits);
  const DType type = layer.statistics_type();
  const Dims tokens = {t.batch, t.seq};
  const Shape shape = {.dims = {t.batch * t.seq, in.dims.back()}, .dtype = in.dtype};
  const auto piece = [&](const char* name, Piece which, std::vector<int> inputs, std::vector<int> outputs) {
    ops::CrossEntropy op = of;
    op.piece = which;
    layer.add({.name = name,
               .op = op,
               .inputs = std::move(inputs),
               .outputs = std::move(outputs),
               .shapes = {shape},
               .module = "loss"});
  };
  const int row_max = layer.value("row_max", tokens, type, false);
  piece("loss_max", Piece::Max, {logits}, {row_max});
  layer.reduce_in_place("loss_max_reduce", row_max, Combine::Max);
  const int softmax = layer.value("softmax", in.dims, type, false);
  const int sums = layer.value("row_sums", {t.batch, t.seq, 2}, type, false);  // of exponentials; the target's logit
  const int targets = layer.value("targets", tokens, DType::I64, false);
  piece("loss_exp", Piece::Exp, {logits, row_max}, {softmax, sums, targets});
  layer.reduce_in_place("loss_sum_reduce", sums, Combine::Sum);
  piece("loss", Piece::Loss, {sums, row_max}, {layer.value("loss", {1}, type, false)});
}

}  // namespace

void cross_entropy(LayerBuilder& layer, int logits, const std::string& name, const ops::CrossEntropy& what) {
  const Value in = layer.at(logits);
  const DType type = layer.statistics_type();
  Dims tokens(in.dims.begin(), in.dims.end() - 1);
  Operator op = {.name = name, .op = what, .inputs = {logits}, .module = "loss"};
  const int softmax = layer.value(name + "_softmax", in.dims, type, false);
  const int targets = layer.value(name + "_targets", tokens, DType::I64, false);
  op.outputs = {softmax, targets, layer.value(name + "_value", {1}, type, false)};
  std::int64_t rows = 1;
  for (const std::int64_t d : tokens) rows *= d;
  op.shapes = {{.dims = {rows, in.dims.back()}, .dtype = in.dtype}};
  layer.add(std::move(op));
}

namespace {

// The head: logits of all tokens, and their loss. `shared`: other operators read x, too.
void next_tokens(LayerBuilder& layer, const LocalTransformer& t, int x, const ops::CrossEntropy& loss, bool shared) {
  const Transformer& m = t.model;
  x = layer.column_input("vocab", x, shared);
  const std::int64_t columns = t.vocab / t.sharding.tp;
  int logits = layer.linear({.name = "vocab",
                             .module = "head",
                             .in = m.hidden,
                             .out = t.vocab,
                             .split = 0,
                             .bias = m.lm_head_bias,
                             .weight = m.tied_embeddings ? "token.weight" : "",
                             .tied = m.tied_embeddings,
                             .shared = true},
                            x, {t.batch, t.seq, columns});
  logits = layer.cap("logit_cap", m.block.scales.logit_cap, layer.scale("logit_scale", m.block.scales.logits, logits));
  if (layer.tensor_parallel()) {
    parallel_cross_entropy(layer, t, logits, loss);
  } else {
    cross_entropy(layer, logits, "loss", loss);
  }
}

// A module for multi-token prediction (DeepSeek-V3, arXiv:2412.19437, section 2.2). Its inputs are the output of the model, or of the
// module before, for a token, and the embedding of the token ahead. It has a norm of each, a linear layer of their concatenation (computed
// as the sum of two products), a transformer layer, a norm and the shared head. `x` becomes the output of its layer.
void later_tokens(LayerBuilder& layer, const LocalTransformer& t, int module, int& x) {
  constexpr double kWeight = 0.3;  // of the loss of all modules together: the value for the first 10e12 tokens (section 4.2)
  const Transformer& m = t.model;
  layer.begin_part("mtp" + std::to_string(module) + ".");
  const int embedded = layer.row_output("token", token_lookup(layer, t, module + 1));
  const auto product = [&](const char* name, int of) {
    return layer.linear({.name = name, .module = "mlp", .in = m.hidden, .out = m.hidden}, of, layer.at(of).dims);
  };
  const int hidden = product("hidden_projection", layer.norm("hidden_norm", m, x));
  const int token = product("token_projection", layer.norm("token_norm", m, embedded));
  const LayerVariant last = {
      .local = attends_locally(m, m.layers - 1), .experts = has_experts(m, m.layers - 1), .mixture = mixtures_of(m)};
  x = transformer_block(layer, t, layer.sum("projections", hidden, token), last);
  next_tokens(layer, t, layer.norm("norm", m, x),
              {.classes = m.vocab, .split = t.split, .ahead = module + 1, .weight = kWeight / m.block.mtp_modules}, false);
}

}  // namespace

LayerGraph embedding_layer(const LocalTransformer& t) {
  LayerBuilder layer("embedding", t.sharding, t.split);
  int x = layer.row_output("token", token_lookup(layer, t));
  x = layer.scale("token_scale", t.model.block.scales.embedding, x);
  x = add_positions(layer, t, x);
  if (t.model.embedding_norm) x = layer.norm("norm", t.model, x);
  return layer.finish(-1, layer.dropout("dropout", "dropout", x));
}

LayerGraph head_layer(const LocalTransformer& t) {
  const Transformer& m = t.model;
  LayerBuilder layer("head", t.sharding, t.split);
  const int input = layer.value("x", {t.batch, t.part, m.hidden});
  int x = input, before = input;
  if (m.final_norm) x = layer.norm("norm", m, x);
  if (m.pooler) next_sentence(layer, t, x);
  const bool transformed = m.mlm_head;
  if (transformed) x = masked_language_transform(layer, t, x);
  next_tokens(layer, t, x, {.classes = m.vocab, .split = t.split}, m.pooler && !transformed);
  for (int module = 0; module < m.block.mtp_modules; ++module) later_tokens(layer, t, module, before);
  return layer.finish(input, -1);
}

}  // namespace foreshard
