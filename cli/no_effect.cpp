#include "cli/no_effect.h"

#include "core/error.h"

namespace foreshard {

void refuse_without(const Arguments& arguments, const std::string& needed, const std::vector<std::string>& options) {
  for (const std::string& option : options)
    if (arguments.has(option)) {
      const std::string value = arguments.text(option);
      throw Error(kCommandLine, option, value == "true" ? "it" : value, needed + ": else it has no effect");
    }
}

}  // namespace foreshard
