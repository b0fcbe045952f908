// foreshard show model: the shape of a model file or a shipped model.
#include <ostream>

#include "cli/job/job.h"
#include "cli/program/table.h"
#include "cli/program/verb.h"
#include "core/graph/op_graph_layer_list.h"
#include "core/model/model.h"

namespace foreshard {

// Features of the layers beyond plain attention and a dense MLP.
static void show_settings(const Transformer& t, Table& table) {
  const auto row = [&](const std::string& what, const std::string& value) { table.rows.push_back({what, value}); };
  const auto text = [](std::int64_t n) { return std::to_string(n); };
  const LatentAttention& l = t.attention.latent;
  if (l.key_value_rank > 0)
    row("latent attention", "keys and values of rank " + text(l.key_value_rank) +
                                (l.query_rank > 0 ? ", queries of rank " + text(l.query_rank) : "") + ", heads of " +
                                text(l.plain_dim) + " + " + text(l.rotated_dim) + " and " + text(l.value_dim));
  std::int64_t local = 0, mixtures = 0;
  for (int i = 0; i < t.layers; ++i) local += attends_locally(t, i) ? 1 : 0, mixtures += has_experts(t, i) ? 1 : 0;
  if (local > 0)
    row("local attention",
        text(local) + " of " + text(t.layers) + " layers, " +
            (t.attention.window > 0 ? "windows of " + text(t.attention.window) : "chunks of " + text(t.attention.chunk)));
  const Experts& e = t.block.experts;
  if (e.count > 0)
    row("experts", text(e.chosen) + " of " + text(e.count) + " of width " + text(e.width) +
                       (e.shared_width > 0 ? ", and shared ones of width " + text(e.shared_width) : "") + ", in " +
                       text(mixtures) + " of " + text(t.layers) + " layers");
}

// Parameter counts of mixtures of experts: routed experts, multi-token prediction, and active per token.
template <class Add>
static void show_counts(const Transformer& t, Add&& add) {
  if (t.block.experts.count == 0) return;
  const ParameterCounts counts = parameter_counts(t);
  add("  routed experts", counts.routed);
  if (counts.mtp > 0) add("  multi-token prediction", counts.mtp);
  add("active per token", counts.active);
  add("  without the input embedding", counts.active - counts.input_embedding);
}

static ExitCode show_model(const Arguments& arguments, const Console& console) {
  const Model model = read_model_alone(arguments.text("NAME"), arguments);
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
    show_settings(*t, table);
  } else {
    table.rows.push_back({"family", "layer list"});
    const LayerList& list = std::get<LayerList>(model.shape);
    table.rows.push_back({"layers", std::to_string(chain_layers(list).size()) + ", as --layer-split counts them (" +
                                        std::to_string(list.layers.size()) + " entries with norms, activations and pools)"});
  }
  add("parameters", parameter_count(model));
  if (const auto* t = std::get_if<Transformer>(&model.shape)) show_counts(*t, add);
  console.out << table_text(table);
  return ExitCode::Ok;
}

Verb show_model_verb() {
  return {.name = "show model",
          .summary = "Prints the shape of a model and its exact parameter count.",
          .examples = {"foreshard show model llama-3-70b"},
          .options = {{.name = "NAME", .value = "NAME", .help = "a shipped model or a config.json", .required = true},
                      {.name = "--set",
                       .value = "PATH=VALUE",
                       .help = "sets a field of the model's file, such as model.num_hidden_layers=24; may be repeated",
                       .repeatable = true},
                      {.name = "--json", .help = "print JSON"}},
          .run = show_model};
}

}  // namespace foreshard
