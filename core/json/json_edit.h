// Changes or reads one value of a JSON text by its path, as `--set path=value` does for a model or a cluster.
#pragma once

#include <string>

namespace foreshard {

// The text with the value at `path` replaced. `path` consists of keys and positions: "fabric.levels", "nodes[0].count". A missing key is
// added; the strict reader of the file decides later whether it is known. A `value` that is not JSON is taken as a string. Throws Error, in
// which `where` names the input, for a path that does not fit and for a text that is not JSON.
std::string with_json_value(const std::string& text, const std::string& path, const std::string& value,
                            const std::string& where);

// The JSON text of the value at `path`; "" if there is none.
std::string json_value(const std::string& text, const std::string& path, const std::string& where);

}  // namespace foreshard
