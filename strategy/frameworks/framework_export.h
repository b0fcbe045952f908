// A strategy in the words of a framework: options of its command line, or the file that it reads. Every choice that was simulated is
// said, also where it is the framework's default; what no option says is told in notes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/strategy/strategy.h"

namespace foreshard {

struct FrameworkExport {
  std::string goes_to = {};             // "options of pretrain_gpt.py", "ds_config.json"
  std::string version = {};             // repository and commit or tag whose options these are
  std::vector<std::string> lines = {};  // one option each, or the lines of the file
  std::vector<std::string> notes = {};  // environment, calls of the training script, and what cannot be said
};

// `strategy` is resolved. Empty: no options are known of the framework that it names.
std::optional<FrameworkExport> framework_export(const Model& model, const Strategy& strategy);

}  // namespace foreshard
