// Layer lists: their shapes and their files.
#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "core/base/count_text.h"
#include "core/base/error.h"
#include "core/model/model_files.h"

namespace foreshard {

namespace {

using Shape = std::vector<std::int64_t>;

// What a layer's entry may and must hold.
struct OpRule {
  std::string_view word;
  LayerOp op;
  bool features = false, window = false, bias = false;
};
constexpr std::array<OpRule, 8> rules = {{
    {"conv2d", LayerOp::Conv2d, true, true, true},
    {"batch_norm", LayerOp::BatchNorm},
    {"relu", LayerOp::Relu},
    {"max_pool", LayerOp::MaxPool, false, true},
    {"avg_pool", LayerOp::AvgPool, false, true},
    {"add", LayerOp::Add},
    {"flatten", LayerOp::Flatten},
    {"linear", LayerOp::Linear, true, false, true},
}};

const OpRule& rule(LayerOp op) {
  return *std::find_if(rules.begin(), rules.end(), [&](const OpRule& r) { return r.op == op; });
}

std::string text(const Shape& shape) {
  std::string out;
  for (const std::int64_t n : shape) out += (out.empty() ? "" : " x ") + std::to_string(n);
  return out;
}

double elements(const Shape& shape) {
  double product = 1;
  for (const std::int64_t n : shape) product *= static_cast<double>(n);
  return product;
}

// One list with the name that errors give it.
class Checked {
 public:
  Checked(const LayerList& list, std::string where) : list_(list), where_(std::move(where)) {}

  std::vector<std::vector<int>> inputs() const {
    std::unordered_map<std::string_view, int> known = {{"input", -1}};
    std::unordered_map<std::string_view, int> all;
    for (std::size_t i = 0; i < list_.layers.size(); ++i) all.emplace(list_.layers[i].name, static_cast<int>(i));
    std::vector<std::vector<int>> inputs(list_.layers.size());
    std::vector<bool> read(list_.layers.size(), false);
    for (std::size_t i = 0; i < list_.layers.size(); ++i) {
      const LayerSpec& layer = list_.layers[i];
      if (layer.inputs.empty()) inputs[i].push_back(static_cast<int>(i) - 1);
      for (std::size_t k = 0; k < layer.inputs.size(); ++k) {
        const auto hit = known.find(layer.inputs[k]);
        if (hit == known.end()) wrong_input(i, k, all.count(layer.inputs[k]) > 0);
        inputs[i].push_back(hit->second);
      }
      for (const int source : inputs[i])
        if (source >= 0) read[static_cast<std::size_t>(source)] = true;
      if (!known.emplace(layer.name, static_cast<int>(i)).second)
        fail(i, "name", "\"" + layer.name + "\" a second time", "a name of its own (\"input\" is the sample)");
    }
    const auto unread = static_cast<std::size_t>(std::find(read.begin(), read.end(), false) - read.begin());
    if (unread + 1 < read.size()) fail(unread, "", "a layer that no other reads", "the last layer to be the only end");
    return inputs;
  }

  std::vector<Shape> outputs() const {
    const std::vector<std::vector<int>> inputs = this->inputs();
    if (list_.input.size() != 1 && list_.input.size() != 3)
      throw Error(where_, "input", text(list_.input), "[features] or [channels, height, width]");
    std::vector<Shape> shapes(list_.layers.size());
    double parameters = 0;
    for (std::size_t i = 0; i < list_.layers.size(); ++i) {
      std::vector<const Shape*> sources;
      for (const int source : inputs[i])
        sources.push_back(source < 0 ? &list_.input : &shapes[static_cast<std::size_t>(source)]);
      shapes[i] = output(i, sources);
      if (elements(shapes[i]) > most_elements) fail(i, "", "an output of " + text(shapes[i]), "at most 1e12 elements");
      parameters += parameter_estimate(list_.layers[i], *sources.front());
      if (parameters > most_parameters) fail(i, "", "more than 1e16 parameters up to here", "fewer");
    }
    if (list_.classes > 0 && !shapes.empty() && shapes.back() != Shape{list_.classes})
      fail(shapes.size() - 1, "", "an output of " + text(shapes.back()),
           "the " + std::to_string(list_.classes) + " classes, one feature each");
    return shapes;
  }

 private:
  [[noreturn]] void fail(std::size_t i, const std::string& key, const std::string& found, const std::string& expected) const {
    const std::string name = list_.layers[i].name;
    throw Error(where_, "layers[" + std::to_string(i) + "]" + (key.empty() ? " (" + name + ")" : "." + key), found, expected);
  }

  [[noreturn]] void wrong_input(std::size_t i, std::size_t k, bool later) const {
    const std::string& name = list_.layers[i].inputs[k];
    std::vector<std::string> names = {"input"};
    for (std::size_t j = 0; j < i; ++j) names.push_back(list_.layers[j].name);
    const std::string near = later ? "" : nearest_name(name, names);
    const std::string found = "\"" + name + "\"" + (later ? ", which does not stand earlier (a cycle, or out of order)" : "");
    fail(i, "inputs[" + std::to_string(k) + "]", found,
         near.empty() ? "the name of an earlier layer or \"input\""
                      : "the name of an earlier layer (nearest: \"" + near + "\")");
  }

  Shape output(std::size_t i, const std::vector<const Shape*>& inputs) const {
    const LayerSpec& layer = list_.layers[i];
    const Shape& in = *inputs.front();
    if (layer.op == LayerOp::Add ? inputs.size() < 2 : inputs.size() != 1)
      fail(i, "inputs", std::to_string(inputs.size()) + " inputs", layer.op == LayerOp::Add ? "at least 2" : "one input");
    switch (layer.op) {
      case LayerOp::Conv2d: return windowed(i, in, layer.features);
      case LayerOp::MaxPool:
      case LayerOp::AvgPool: return windowed(i, in, in.front());
      case LayerOp::BatchNorm:
      case LayerOp::Relu: return in;
      case LayerOp::Add:
        for (const Shape* other : inputs)
          if (*other != in) fail(i, "", "inputs of " + text(in) + " and " + text(*other), "inputs of one shape");
        return in;
      case LayerOp::Flatten:
        if (elements(in) > most_elements) fail(i, "", "an input of " + text(in), "at most 1e12 elements");
        return {static_cast<std::int64_t>(elements(in))};
      case LayerOp::Linear:
        if (in.size() != 1) fail(i, "", "an input of " + text(in), "one dimension (flatten comes first)");
        return {layer.features};
    }
    return {};
  }

  Shape windowed(std::size_t i, const Shape& in, std::int64_t channels) const {
    const LayerSpec& layer = list_.layers[i];
    if (in.size() != 3) fail(i, "", "an input of " + text(in), "channels x height x width");
    if (layer.kernel < 1) fail(i, "kernel", std::to_string(layer.kernel), "at least 1");
    if (layer.stride < 1) fail(i, "stride", std::to_string(layer.stride), "at least 1");
    if (layer.padding >= layer.kernel)
      fail(i, "padding", std::to_string(layer.padding), "less than the kernel of " + std::to_string(layer.kernel));
    Shape out = {channels};
    for (const std::int64_t n : {in[1], in[2]}) {
      const std::int64_t padded = n + 2 * std::int64_t{layer.padding};
      if (layer.kernel > padded)
        fail(i, "kernel", std::to_string(layer.kernel), "at most the padded input of " + std::to_string(padded));
      out.push_back((padded - layer.kernel) / layer.stride + 1);  // PyTorch Conv2d, MaxPool2d: floor
    }
    return out;
  }

  const LayerList& list_;
  std::string where_;
};

LayerSpec parse_layer(const JsonReader& json) {
  std::vector<std::string> words;
  for (const OpRule& r : rules) words.emplace_back(r.word);
  if (!json.is_object()) json.fail("an object with name and op");
  const std::string word = json.at("op").as_choice(words);
  const OpRule& r = rules[static_cast<std::size_t>(std::find(words.begin(), words.end(), word) - words.begin())];

  std::vector<std::string> keys = {"name", "op", "inputs"};
  if (r.features) keys.emplace_back("features");
  if (r.window) keys.insert(keys.end(), {"kernel", "stride", "padding"});
  if (r.bias) keys.emplace_back("bias");
  json.only(keys);

  LayerSpec layer{.name = json.at("name").as_string(), .op = r.op};
  if (layer.name.empty()) json.at("name").fail("a name");
  if (const auto inputs = json.find("inputs"))
    for (const JsonReader& input : inputs->elements()) layer.inputs.push_back(input.as_string());
  if (r.features) layer.features = json.at("features").as_int(1, largest_size);
  if (r.window) {
    constexpr std::int64_t widest = 1'000'000;
    layer.kernel = static_cast<int>(json.at("kernel").as_int(1, widest));
    if (const auto stride = json.find("stride")) layer.stride = static_cast<int>(stride->as_int(1, widest));
    if (const auto padding = json.find("padding")) layer.padding = static_cast<int>(padding->as_int(0, widest));
  }
  if (const auto bias = json.find("bias")) layer.bias = bias->as_bool();
  return layer;
}

}  // namespace

std::vector<std::vector<int>> input_layers(const LayerList& list) { return Checked(list, "layer list").inputs(); }
std::vector<std::vector<std::int64_t>> output_shapes(const LayerList& list) { return Checked(list, "layer list").outputs(); }

LayerList parse_layers(const JsonReader& json) {
  json.only({"model_type", "name", "source", "input", "classes", "layers"});
  LayerList list;
  const JsonReader input = json.at("input");
  if (!input.is_array() || (input.size() != 1 && input.size() != 3)) input.fail("[features] or [channels, height, width]");
  for (const JsonReader& n : input.elements()) list.input.push_back(n.as_int(1, largest_size));
  if (elements(list.input) > most_elements) input.fail("at most 1e12 elements");
  if (const auto classes = json.find("classes")) list.classes = classes->as_int(0, largest_size);
  const JsonReader layers = json.at("layers");
  if (layers.size() == 0 || layers.size() > static_cast<std::size_t>(most_layers))
    layers.fail("from 1 to " + counted(most_layers, "layer"));
  for (const JsonReader& layer : layers.elements()) list.layers.push_back(parse_layer(layer));
  Checked(list, json.file()).outputs();
  const auto trained = [](const LayerSpec& l) {
    return l.op == LayerOp::Conv2d || l.op == LayerOp::BatchNorm || l.op == LayerOp::Linear;
  };
  if (std::none_of(list.layers.begin(), list.layers.end(), trained)) layers.fail("at least one layer with parameters");
  return list;
}

void write_layers(JsonWriter& json, const LayerList& list) {
  json.key("input").begin_line_array();
  for (const std::int64_t n : list.input) json.value(n);
  json.end_array().field("classes", list.classes).key("layers").begin_array();
  for (const LayerSpec& layer : list.layers) {
    const OpRule& r = rule(layer.op);
    JsonWriter line(0);
    line.begin_object().field("name", layer.name).field("op", std::string(r.word));
    if (!layer.inputs.empty()) {
      line.key("inputs").begin_array();
      for (const std::string& input : layer.inputs) line.value(input);
      line.end_array();
    }
    if (r.features) line.field("features", layer.features);
    if (r.window) line.field("kernel", layer.kernel).field("stride", layer.stride).field("padding", layer.padding);
    if (r.bias) line.field("bias", layer.bias);
    json.raw(line.end_object().text());
  }
  json.end_array();
}

}  // namespace foreshard
