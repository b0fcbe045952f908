// Translates sentences of the engine (the libraries below the window) into the language of the window: why a strategy is infeasible, what
// would help, what is wrong with a value.
#pragma once

#include <QString>

namespace foreshard {

// A sentence without a translation is returned unchanged.
QString engine_words(const QString& sentence);

// The sentence that says why a job is too large, without its last part, which proposes options of the command line.
QString without_force(const QString& sentence);

}  // namespace foreshard
