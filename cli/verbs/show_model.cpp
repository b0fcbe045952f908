// foreshard show model: the shape of a model file or a shipped model.
#include <ostream>

#include "cli/program/table.h"
#include "cli/program/verb.h"
#include "core/graph/op_graph_layer_list.h"
#include "core/model/model.h"

namespace foreshard {

static ExitCode show_model(const Arguments& arguments, const Console& console) {
  const Model model = load_model(arguments.text("NAME"));
  if (arguments.flag("--json")) {
    console.out << to_json(model);
    return ExitCode::Ok;
  }
  Table table{{"what", "value"}, {{"name", model.name}, {"source", model.source}}};
  const auto add = [&](const std::string& what, std::int64_t value) { table.rows.push_back({what, std::to_string(value)}); };
  if (const auto* t = std::get_if<Transformer>(&model.shape)) {
    table.rows.push_back({"family", t->causal ? "decoder" : "encoder"});
    add("layers", t->layers), add("hidden", t->hidden), add("ffn hidden", t->ffn_hidden);
    add("heads", t->heads), add("key/value heads", t->kv_heads), add("vocabulary", t->vocab);
    add("positions", t->max_positions);
  } else {
    table.rows.push_back({"family", "layer list"});
    const LayerList& list = std::get<LayerList>(model.shape);
    table.rows.push_back({"layers", std::to_string(chain_layers(list).size()) + ", as --layer-split counts them (" +
                                        std::to_string(list.layers.size()) + " entries with norms, activations and pools)"});
  }
  add("parameters", parameter_count(model));
  console.out << table_text(table);
  return ExitCode::Ok;
}

Verb show_model_verb() {
  return {.name = "show model",
          .summary = "Prints the shape of a model and its exact parameter count.",
          .examples = {"foreshard show model llama-3-70b"},
          .options = {{.name = "NAME", .value = "NAME", .help = "a shipped model or a config.json", .required = true},
                      {.name = "--json", .help = "print JSON"}},
          .run = show_model};
}

}  // namespace foreshard
