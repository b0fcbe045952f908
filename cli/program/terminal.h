// What the terminal can show.
#pragma once

namespace foreshard {

bool terminal_takes_unicode();  // as the environment says (LC_ALL, LC_CTYPE, LANG)

}  // namespace foreshard
