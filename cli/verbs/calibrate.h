// foreshard calibrate: measures this machine; writes a machine profile and a cluster file.
#pragma once

#include "cli/program/verb.h"

namespace foreshard {

Verb calibrate_verb();

}  // namespace foreshard
