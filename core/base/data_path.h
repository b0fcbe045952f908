// Where shipped data lives: models/, topologies/. Found from any working directory, from the build tree and after install.
#pragma once

#include <string>
#include <vector>

namespace foreshard {

// Directory that holds `models` and `topologies`: $FORESHARD_DATA, beside the program (../share/foreshard), the source tree.
std::string data_directory();
// Names without extension of the shipped files of a kind ("models", "topologies", "topologies/gpus"), sorted.
std::vector<std::string> shipped(const std::string& kind);

}  // namespace foreshard
