// What the engine says (why a strategy cannot be, what would help, what is wrong with a value) in the language of the window.
#pragma once

#include <QString>

namespace foreshard {

// A sentence that has no translation here stays as it is.
QString engine_words(const QString& sentence);

// Why work is too large, without the options of a command line that it proposes.
QString without_force(const QString& sentence);

}  // namespace foreshard
