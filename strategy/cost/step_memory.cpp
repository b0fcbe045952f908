#include "strategy/cost/step_memory.h"

#include <sstream>

#include "core/base/error.h"

namespace foreshard {

namespace {

struct Term {
  const char* word;
  double TensorWidth::*bytes;
};
constexpr Term kTerms[] = {{"hidden", &TensorWidth::hidden},
                           {"query", &TensorWidth::query},
                           {"keys", &TensorWidth::keys},
                           {"ffn", &TensorWidth::ffn},
                           {"heads", &TensorWidth::heads}};

TensorWidth read_width(const JsonReader& json) {
  const std::string text = json.as_string();
  const auto refuse = [&] { json.fail("a sum such as \"2 query + 4 keys\" of hidden, query, keys, ffn and heads"); };
  TensorWidth width;
  std::istringstream words(text);
  std::string plus = "+", word;
  double bytes = 0;
  while (plus == "+") {
    if (!(words >> bytes >> word) || bytes <= 0 || bytes > 1e3) refuse();
    bool known = false;
    for (const Term& term : kTerms)
      if (word == term.word) width.*term.bytes += bytes, known = true;
    if (!known) refuse();
    if (!(words >> plus)) break;
    if (plus != "+") refuse();
  }
  return width;
}

void read_widths(const JsonReader& json, const std::string& key, std::vector<TensorWidth>& into) {
  if (const auto list = json.find(key))
    for (const JsonReader& width : list->elements()) into.push_back(read_width(width));
}

}  // namespace

StepMemory read_step_memory(const JsonReader& json) {
  json.only({"rules", "source", "kept", "kept_selective", "kept_full", "kept_head", "held_by_collectives", "gather_buffers"});
  StepMemory step = {.rules = json.at("rules").as_choice({"fully_shard", "nanotron", "internevo"})};
  read_widths(json, "kept", step.kept);
  read_widths(json, "kept_selective", step.kept_selective);
  read_widths(json, "kept_full", step.kept_full);
  read_widths(json, "kept_head", step.kept_head);
  read_widths(json, "held_by_collectives", step.held_by_collectives);
  read_widths(json, "gather_buffers", step.gather_buffers);
  return step;
}

}  // namespace foreshard
