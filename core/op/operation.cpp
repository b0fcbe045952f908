#include "core/op/operation.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/words.h"

namespace foreshard {

namespace {

using Every = std::make_index_sequence<std::variant_size_v<Operation>>;

template <std::size_t... place>
std::vector<std::string> all_words(std::index_sequence<place...>) {
  return {std::variant_alternative_t<place, Operation>::kWord...};
}

template <std::size_t... place>
constexpr auto makers(std::index_sequence<place...>) {
  return std::array{+[]() { return Operation(std::in_place_index<place>); }...};
}

std::string shortest(double value) {
  char text[32];
  for (int digits = 6; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  return text;
}

template <class Operator>
constexpr bool of_layers = requires(const Operator& op, const ops::Sizes& sizes) {
  op.works(sizes);
};

}  // namespace

template <>
const std::vector<std::string>& words<Phase>() {
  static const std::vector<std::string> list = {"forward",   "input_grad", "weight_grad", "backward",
                                                "recompute", "update",     "other"};
  return list;
}
template <>
const std::vector<std::string>& words<NormKind>() {
  static const std::vector<std::string> list = {"layernorm", "rmsnorm"};
  return list;
}
template <>
const std::vector<std::string>& words<QkNorm>() {
  static const std::vector<std::string> list = {"none", "per_head", "all_heads", "unweighted"};
  return list;
}
template <>
const std::vector<std::string>& words<ops::Activation::Function>() {
  static const std::vector<std::string> list = {"gelu", "relu", "tanh", "swiglu", "geglu", "clamped_swiglu", "cap"};
  return list;
}
template <>
const std::vector<std::string>& words<ops::Route::Score>() {
  static const std::vector<std::string> list = {"softmax", "softmax_of_chosen", "sigmoid"};
  return list;
}
template <>
const std::vector<std::string>& words<ops::Code>() {
  static const std::vector<std::string> list = {"largest", "signs", "eight_bits", "segments", "floats"};
  return list;
}
template <>
const std::vector<std::string>& words<ops::CrossEntropy::Piece>() {
  static const std::vector<std::string> list = {"whole", "max", "exp", "loss"};
  return list;
}
template <>
const std::vector<std::string>& words<ops::CrossEntropy::Target>() {
  static const std::vector<std::string> list = {"next_token", "label", "next_sentence"};
  return list;
}

const std::vector<std::string>& operation_words() {
  static const std::vector<std::string> list = all_words(Every{});
  return list;
}

const std::string& word(const Operation& operation) { return operation_words()[operation.index()]; }

Operation operation_of(std::size_t index) { return makers(Every{}).at(index)(); }

std::string settings_text(const Operation& operation) {
  std::string text;
  const auto say = [&](const std::string& words) { text += (text.empty() ? "" : " ") + words; };
  visit_settings(operation, [&]<class T>(const char* name, const T& value, const T& usual) {
    if constexpr (std::is_same_v<T, bool>) {
      if (value) say(name);
    } else if constexpr (std::is_enum_v<T>) {
      say(word(value));
    } else if (value != usual) {
      say(std::string(name) + "=" + shortest(static_cast<double>(value)));
    }
  });
  return text;
}

std::string kernel_words(const Operation& operation) {
  std::string text;
  visit_settings(operation, [&]<class T>(const char* name, const T& value, const T&) {
    if constexpr (std::is_enum_v<T>)
      text += " " + word(value);
    else if ((std::is_same_v<T, bool> || std::string_view(name) == "p") && value != T{})
      text += std::string(" ") + name;
    else if (const std::string_view key = name;
             (key == "window" || key == "chunk" || key == "value_dim" || key == "score_cap") &&
             value != T{})  // of attention: other work for the same shape
      text += " " + std::string(name) + "=" + shortest(static_cast<double>(value));
  });
  return text;
}

ops::Saved saved(const Operation& operation) {
  return std::visit(
      []<class Operator>(const Operator& op) -> ops::Saved {
        if constexpr (of_layers<Operator>) return op.saved();
        FS_ASSERT(!"an operator of a layer");
        return {};
      },
      operation);
}

ops::Works works(const Operation& operation, const ops::Sizes& sizes) {
  return std::visit(
      [&]<class Operator>(const Operator& op) -> ops::Works {
        if constexpr (of_layers<Operator>) return op.works(sizes);
        FS_ASSERT(!"an operator of a layer");
        return {};
      },
      operation);
}

ops::PartialSums partial_sums(const Operation& operation, Phase phase) {
  return std::visit([&](const auto& op) { return op.partial_sums(phase); }, operation);
}
bool depends_on_microbatch(const Operation& operation) {
  const auto depends = [](const auto& op) {
    if constexpr (requires { op.p; })  // of dropout, also inside attention
      return op.p > 0;
    else
      return op.depends_on_microbatch;
  };
  return std::visit(depends, operation);
}
bool is_matrix_product(const Operation& operation) {
  return std::visit([](const auto& op) { return op.matrix_product; }, operation);
}
bool is_loss(const Operation& operation) {
  return std::visit([](const auto& op) { return op.loss; }, operation);
}
bool is_step(const Operation& operation) {
  return std::visit([](const auto& op) { return op.steps; }, operation);
}
bool is_of_update(const Operation& operation) {
  return std::visit([](const auto& op) { return op.of_update; }, operation);
}
bool reads_sums(const Operation& operation) {
  return std::visit([](const auto& op) { return op.reads_sums; }, operation);
}
bool encodes(const Operation& operation) {
  return std::visit([](const auto& op) { return op.encodes; }, operation);
}
bool decodes(const Operation& operation) {
  return std::visit([](const auto& op) { return op.decodes; }, operation);
}
bool adds_parts(const Operation& operation) {
  return std::visit([](const auto& op) { return op.adds_parts(); }, operation);
}
int gradients(const Operation& operation) {
  return std::visit([](const auto& op) { return op.gradients(); }, operation);
}
bool takes_loss_scale(const Operation& operation, Phase phase) {
  return std::visit([&](const auto& op) { return op.takes_loss_scale(phase); }, operation);
}
bool writes_loss(const Operation& operation) {
  return std::visit([](const auto& op) { return op.writes_loss(); }, operation);
}

}  // namespace foreshard
