// Summaries made up for the tests of what is printed.
#pragma once

#include "core/result/summary.h"

namespace foreshard::summaries {

// 1024 GPUs, `stages` pipeline ranks with one stage each; every number differs from every other where it matters.
Summary typical(int stages);

}  // namespace foreshard::summaries
