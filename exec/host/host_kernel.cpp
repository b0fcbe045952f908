#include "exec/host/host_kernel.h"

#include <cmath>
#include <cstdlib>
#include <optional>

#include "core/base/error.h"

namespace foreshard::host {

namespace {

// What follows "key=" up to the next space.
std::optional<std::string> value_of(const std::string& text, std::string_view key) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = std::string_view(text).substr(at, end - at);
    if (word.size() > key.size() && word.starts_with(key) && word[key.size()] == '=')
      return std::string(word.substr(key.size() + 1));
    at = end + 1;
  }
  return std::nullopt;
}

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::Forward: return "forward";
    case Phase::InputGrad: return "input gradient";
    case Phase::WeightGrad: return "weight gradient";
    case Phase::Backward: return "backward";
    case Phase::Recompute: return "recompute";
    case Phase::Update: return "update";
    case Phase::Other: return "other";
  }
  return "?";
}

constexpr const char* kOpNames[kOps] = {"MatMul",   "Attention", "Softmax", "Norm",      "Activation",   "Bias",
                                        "Dropout",  "Add",       "Rope",    "Embedding", "CrossEntropy", "SumOfSquares",
                                        "Conv2d",   "BatchNorm", "MaxPool", "AvgPool",   "Adam",         "Sgd",
                                        "GradNorm", "ClipScale", "Cast",    "Zero",      "Encode",       "Decode"};

}  // namespace

bool Attributes::has(std::string_view word) const {
  for (std::size_t at = 0; at < text_.size();) {
    const std::size_t end = std::min(text_.find(' ', at), text_.size());
    if (std::string_view(text_).substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

bool Attributes::sets(std::string_view key) const { return value_of(text_, key).has_value(); }

std::string Attributes::word(std::string_view key) const { return value_of(text_, key).value_or(""); }

double Attributes::number(std::string_view key) const {
  const std::string found = word(key);
  char* end = nullptr;
  const double value = std::strtod(found.c_str(), &end);
  if (found.empty() || *end != '\0' || !std::isfinite(value))
    throw Error("plan", "attributes", "\"" + text_ + "\"", std::string(key) + "=number");
  return value;
}

std::int64_t Attributes::integer(std::string_view key) const {
  const double value = number(key);
  if (value != std::floor(value) || std::abs(value) > 0x1p53)
    throw Error("plan", "attributes", "\"" + text_ + "\"", std::string(key) + "=integer");
  return static_cast<std::int64_t>(value);
}

const std::vector<std::int64_t>& Form::dims(std::size_t index, std::size_t count) const {
  if (index >= what.shapes.size())
    refuse(std::to_string(what.shapes.size()) + " shapes", "at least " + std::to_string(index + 1));
  const auto& found = what.shapes[index].dims;
  if (found.empty() || (count > 0 && found.size() != count))
    refuse("shape " + std::to_string(index) + " of " + std::to_string(found.size()) + " dimensions",
           count > 0 ? std::to_string(count) : "at least 1");
  for (const std::int64_t dim : found)
    if (dim < 1) refuse("dimension " + std::to_string(dim), "at least 1");
  return found;
}

void Form::expect(const std::vector<std::int64_t>& read_sizes, const std::vector<std::int64_t>& write_sizes) const {
  const auto check = [&](std::span<const Operand> operands, const std::vector<std::int64_t>& sizes, const std::string& side) {
    if (operands.size() != sizes.size()) refuse(std::to_string(operands.size()) + " " + side, std::to_string(sizes.size()));
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (operands[i].elements < sizes[i])
        refuse(side + "[" + std::to_string(i) + "] of " + std::to_string(operands[i].elements) + " elements",
               "at least " + std::to_string(sizes[i]));
  };
  check(reads, read_sizes, "reads");
  check(writes, write_sizes, "writes");
}

void Form::refuse(const std::string& found, const std::string& expected) const {
  throw Error("plan", std::string("compute ") + kOpNames[static_cast<int>(what.op)] + ", " + phase_name(what.phase), found,
              expected);
}

}  // namespace foreshard::host
