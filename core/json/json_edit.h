// One value of a JSON text by its path: what `--set path=value` changes in a model or a cluster.
#pragma once

#include <string>

namespace foreshard {

// `path`: keys and positions, "fabric.levels", "nodes[0].count". Keys that are not there are added: the strict reader
// of the file then says whether they are known. `value` is a JSON value, or else a text. `where` names the input in the
// Error, which is also thrown for a text that is no JSON.
std::string with_json_value(const std::string& text, const std::string& path, const std::string& value,
                            const std::string& where);

// The text of the value at a path, "" when there is none.
std::string json_value(const std::string& text, const std::string& path, const std::string& where);

}  // namespace foreshard
