// Limits on what the numbers of a row make together, beside those of each cell (measured_numbers.h). Internal to validation/.
#pragma once

#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "validation/measured.h"

namespace foreshard {

// Throws Error unless the heads divide among each other and are of a usual size together.
void expect_heads(const MeasuredRow& row, const Transformer& t);
// Throws Error for a pipeline that would take very long to lower: that grows with pp x vpp x the micro-batches that are played, of which there
// are at most some 4 x pp.
void expect_short_pipeline(const MeasuredRow& row, const Strategy& s);

}  // namespace foreshard
