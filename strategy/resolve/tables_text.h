// The five tables as a person reads them.
#pragma once

#include <string>
#include <vector>

#include "strategy/resolve/tables.h"

namespace foreshard {

struct TextOfTable {
  std::string key = {};    // "groups", in JSON
  std::string title = {};  // "layout: groups"
  std::vector<std::string> head = {};
  std::vector<std::vector<std::string>> rows = {};  // a cell for each column
};

// Layout (axes, groups), schedule with the layers of its stages, state, activations, communication, update, local shapes; tables
// without rows are left out.
std::vector<TextOfTable> texts_of(const StrategyTables& tables);

// The moves of the ActivationPolicy, by the names of layers, values and operators.
TextOfTable moves_text(const StrategyTables& tables, const OpGraph& graph);

// "data, context"; "-" for none.
std::string to_text(const Kinds& kinds);

}  // namespace foreshard
