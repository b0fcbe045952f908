#include "cli/program/terminal.h"

#include <cstdlib>
#include <string>

namespace foreshard {

bool terminal_takes_unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const char* value = std::getenv(name); value && *value)
      return std::string(value).find("UTF-8") != std::string::npos || std::string(value).find("utf8") != std::string::npos;
  return false;
}

}  // namespace foreshard
