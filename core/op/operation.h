// Operation: a variant of all operators of op graphs and plans. A new operator is a struct with its laws, a line in this variant and a
// line in each backend's table of kernels.
#pragma once

#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/op/activation.h"
#include "core/op/attention.h"
#include "core/op/codec.h"
#include "core/op/context_parallel.h"
#include "core/op/convolution.h"
#include "core/op/dropout.h"
#include "core/op/embedding.h"
#include "core/op/experts.h"
#include "core/op/latent_heads.h"
#include "core/op/loss.h"
#include "core/op/matmul.h"
#include "core/op/norm.h"
#include "core/op/rope.h"
#include "core/op/token_rows.h"
#include "core/op/update.h"

namespace foreshard {

using Operation =
    std::variant<ops::MatMul, ops::Attention, ops::Scores, ops::Softmax, ops::WeightedValues, ops::Norm, ops::BatchNorm,
                 ops::Activation, ops::Dropout, ops::Add, ops::Rope, ops::TokenEmbedding, ops::PositionEmbedding, ops::Sample,
                 ops::CrossEntropy, ops::SumOfSquares, ops::Conv2d, ops::MaxPool, ops::AvgPool, ops::Adam, ops::Sgd,
                 ops::GradNorm, ops::ClipScale, ops::JudgeOverflow, ops::Cast, ops::Zero, ops::Encode, ops::Decode,
                 ops::MergeAttention, ops::HeadParts, ops::TokenScores, ops::KeepTokens, ops::TakeRows, ops::PutRows,
                 ops::HeadNorm, ops::Scale, ops::LatentHeads, ops::Route, ops::Dispatch, ops::Combine, ops::GroupedMatMul,
                 ops::SendOnce, ops::BalanceExperts>;

// Whether it is one of these operators.
template <class... Operator>
bool is(const Operation& operation) {
  return (std::holds_alternative<Operator>(operation) || ...);
}

const std::string& word(const Operation& operation);  // its kWord
const std::vector<std::string>& operation_words();    // all words, in the order of the variant
Operation operation_of(std::size_t index);            // alternative `index` of the variant, with default settings

// Calls visit(name, value, default value) for each setting, in the order of files. Types are bool, enums, int, int64 and double.
template <class Visit>
void visit_settings(const Operation& operation, Visit&& visit) {
  std::visit(
      [&]<class Operator>(const Operator& op) {
        const Operator usual;
        std::vector<const void*> defaults;
        Operator::fields(usual, [&](const char*, const auto& value) { defaults.push_back(&value); });
        std::size_t next = 0;
        Operator::fields(op, [&]<class T>(const char* name, const T& value) {
          visit(name, value, *static_cast<const T*>(defaults[next++]));
        });
      },
      operation);
}

// The settings as text for people: "causal heads=96 kv_heads=96 dim=128". Numbers at their default and false flags are left out.
std::string settings_text(const Operation& operation);

// What selects a kernel of the operator besides sizes: enums, flags that are set, "p" if there is dropout, and the attention settings
// window, chunk, value_dim and score_cap if they are set. A space precedes each.
std::string kernel_words(const Operation& operation);

// The laws of the operator, see core/op/op.h.
ops::Saved saved(const Operation& operation);  // `saved` and `works`: only for operators that layers consist of
ops::Works works(const Operation& operation, const ops::Sizes& sizes);
ops::PartialSums partial_sums(const Operation& operation, Phase phase);
bool depends_on_microbatch(const Operation& operation);
bool is_matrix_product(const Operation& operation);
bool is_loss(const Operation& operation);
bool is_step(const Operation& operation);
bool is_of_update(const Operation& operation);
bool reads_sums(const Operation& operation);
bool encodes(const Operation& operation);
bool decodes(const Operation& operation);
bool adds_parts(const Operation& operation);
int gradients(const Operation& operation);
bool takes_loss_scale(const Operation& operation, Phase phase);
bool writes_loss(const Operation& operation);

}  // namespace foreshard
