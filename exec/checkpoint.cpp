#include "exec/checkpoint.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "exec/safetensors.h"

namespace foreshard {

namespace {

constexpr std::pair<TensorPart, const char*> kParts[] = {{TensorPart::Value, ""},
                                                         {TensorPart::Master, "master."},
                                                         {TensorPart::Momentum, "momentum."},
                                                         {TensorPart::Variance, "variance."}};
constexpr const char* kFormat = "foreshard-checkpoint-1";

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t dim : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + "]";
}

template <class Number>
Number number_of(const SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  const std::string text = found == file.metadata().end() ? "" : found->second;
  Number number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size() || text.starts_with('-'))
    throw Error(file.path(), "__metadata__." + key, "\"" + text + "\"", "a whole number");
  return number;
}

// Rows (of the first dimension) of a vocabulary; the others pad it. 0: the tensor is none.
std::int64_t vocabulary_of(const Plan& plan) {
  for (const Segment& segment : plan.segments)
    for (const Instruction& instruction : segment.instructions)
      if (const auto* what = std::get_if<Compute>(&instruction.what); what && what->op == Op::Embedding)
        if (const std::size_t at = what->attributes.find("vocab="); at != std::string::npos)
          return std::atoll(what->attributes.c_str() + at + 6);
  return 0;
}

// The elements in the shape that the plan has: equal, or with fewer or more rows of padding.
std::vector<double> read_in_shape(SafetensorsFile& file, const std::string& name, const Tensor& tensor,
                                  std::int64_t vocabulary) {
  const std::vector<std::int64_t>& found = file.at(name).shape;
  std::vector<double> elements = file.read(name);
  if (found == tensor.shape) return elements;
  const bool rows_differ = !found.empty() && found.size() == tensor.shape.size() &&
                           std::equal(found.begin() + 1, found.end(), tensor.shape.begin() + 1);
  if (!rows_differ || vocabulary == 0 || std::min(found[0], tensor.shape[0]) < vocabulary)
    throw Error(file.path(), name, "shape " + shape_text(found), "shape " + shape_text(tensor.shape));
  elements.resize(elements.size() / static_cast<std::size_t>(found[0]) * static_cast<std::size_t>(tensor.shape[0]));
  return elements;
}

}  // namespace

void save_checkpoint(const std::string& path, const Plan& plan, const Ranks& ranks,
                     const std::vector<const RankMemory*>& memories, const TrainingPoint& point) {
  const TensorPieces pieces(plan, ranks);
  struct Entry {
    TensorId tensor = {};
    TensorPart part = {};
  };
  std::vector<Entry> entries;
  std::vector<StoredTensor> stored;
  for (const auto& [part, prefix] : kParts)
    for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
      const TensorId id{static_cast<std::int32_t>(t)};
      const auto dtype = pieces.dtype(id, part);
      if (!dtype) continue;
      entries.push_back({id, part});
      stored.push_back({.name = prefix + plan.tensors[t].name, .dtype = *dtype, .shape = plan.tensors[t].shape});
    }
  SafetensorsWriter writer(path, stored,
                           {{"format", kFormat},
                            {"step", std::to_string(point.step)},
                            {"samples", std::to_string(point.samples)},
                            {"seed", std::to_string(point.seed)}});
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const WholeTensor whole = pieces.gather(memories, entries[i].tensor, entries[i].part);
    if (std::find(whole.held.begin(), whole.held.end(), 0) != whole.held.end())
      throw Error(path, stored[i].name, "elements that no rank here holds", "all ranks of the plan in this process");
    writer.write(whole.elements);
  }
  writer.finish();
}

static void expect_checkpoint(const SafetensorsFile& file) {
  const auto format = file.metadata().find("format");
  if (format == file.metadata().end() || format->second != kFormat)
    throw Error(file.path(), "__metadata__.format", format == file.metadata().end() ? "nothing" : "\"" + format->second + "\"",
                std::string("\"") + kFormat + "\"");
}

TrainingPoint training_point(const std::string& path) {
  const SafetensorsFile file(path);
  expect_checkpoint(file);
  return {.step = number_of<int>(file, "step"),
          .samples = number_of<std::int64_t>(file, "samples"),
          .seed = number_of<std::uint64_t>(file, "seed")};
}

// Tensors of another model would be left out without a word.
static void expect_known(const SafetensorsFile& file, const Plan& plan) {
  for (const StoredTensor& tensor : file.tensors()) {
    std::string name = tensor.name;
    for (const auto& [part, prefix] : kParts)
      if (part != TensorPart::Value && name.starts_with(prefix)) name = name.substr(std::string(prefix).size());
    const bool known = std::any_of(plan.tensors.begin(), plan.tensors.end(), [&](const Tensor& t) { return t.name == name; });
    if (!known) throw Error(file.path(), tensor.name, "a tensor that the plan does not have", "a checkpoint of the same model");
  }
}

void load_checkpoint(const std::string& path, const Plan& plan, const Ranks& ranks,
                     const std::vector<const RankMemory*>& memories) {
  SafetensorsFile file(path);
  expect_checkpoint(file);
  expect_known(file, plan);
  const TensorPieces pieces(plan, ranks);
  const std::int64_t vocabulary = vocabulary_of(plan);
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    const TensorId id{static_cast<std::int32_t>(t)};
    const Tensor& tensor = plan.tensors[t];
    for (const auto& [part, prefix] : kParts) {
      if (!pieces.dtype(id, part)) continue;
      std::string name = prefix + tensor.name;
      const bool weights = part == TensorPart::Value || part == TensorPart::Master;
      if (weights) name = file.has("master." + tensor.name) ? "master." + tensor.name : tensor.name;
      if (!file.has(name))
        throw Error(path, name, "nothing", "this tensor of " + shape_text(tensor.shape) + ", as the plan has it");
      pieces.scatter(memories, id, part, read_in_shape(file, name, tensor, vocabulary));
    }
  }
}

}  // namespace foreshard
