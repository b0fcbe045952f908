// foreshard compare: prints two results of one plan side by side.
#pragma once

#include "cli/program/verb.h"

namespace foreshard {

Verb compare_verb();

}  // namespace foreshard
