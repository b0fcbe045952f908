#include "cli/program/no_effect.h"

#include "core/base/error.h"

namespace foreshard {

void refuse_without(const Arguments& arguments, const std::string& needed, const std::vector<std::string>& options) {
  for (const std::string& option : options)
    if (arguments.has(option)) {
      const std::string value = arguments.text(option);
      throw Error(kCommandLine, option, value == "true" ? "it" : value, needed + ": else it has no effect");
    }
}

void expect_one_format(const Arguments& arguments, const std::vector<std::string>& formats) {
  const std::string* first = nullptr;
  for (const std::string& format : formats)
    if (arguments.has(format)) {
      if (first) throw Error(kCommandLine, format, "it beside " + *first, "one format");
      first = &format;
    }
}

}  // namespace foreshard
