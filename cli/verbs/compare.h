// foreshard compare: two results of one plan, number beside number.
#pragma once

#include "cli/program/verb.h"

namespace foreshard {

Verb compare_verb();

}  // namespace foreshard
