// Where shipped data lives: models/, topologies/. Found from any working directory, from the build tree and after install.
#pragma once

#include <string>
#include <vector>

namespace foreshard {

// The directory that holds `models` and `topologies`: $FORESHARD_DATA if it is set, else ../share/foreshard relative to the program's
// folder if it holds both, else the source tree.
std::string data_directory();
// The names, without extension and sorted, of the .json files in folder `kind` of data_directory(): "models", "topologies",
// "topologies/gpus". Empty if there is no such folder.
std::vector<std::string> shipped(const std::string& kind);

}  // namespace foreshard
