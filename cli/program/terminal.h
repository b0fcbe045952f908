// The character set of the terminal.
#pragma once

namespace foreshard {

bool terminal_takes_unicode();  // by the environment (LC_ALL, LC_CTYPE, LANG)

}  // namespace foreshard
