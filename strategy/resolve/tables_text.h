// The five tables as text: what `foreshard show policies` prints, and its JSON.
#pragma once

#include <string>
#include <vector>

#include "strategy/resolve/tables.h"

namespace foreshard {

struct TextOfTable {
  std::string key = {};                             // in JSON: "groups"
  std::string title = {};                           // "layout: groups"
  std::vector<std::string> head = {};               // [column]: its heading
  std::vector<std::vector<std::string>> rows = {};  // [row][column]
};

// In this order: layout (axes, groups), schedule with the layers of its stages, state, activations, communication, update, local shapes.
// Tables without rows are left out.
std::vector<TextOfTable> texts_of(const StrategyTables& tables);

// "data, context"; "-" if there are none.
std::string to_text(const Kinds& kinds);

}  // namespace foreshard
