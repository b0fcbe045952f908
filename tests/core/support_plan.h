// Plans for the tests of core: a sound one small enough to follow by hand, and random ones for files.
#pragma once

#include <cstdint>
#include <string>

#include "core/plan/plan.h"

namespace foreshard {

// Two stages (one role each), dp 2, three micro-batches under 1F1B, two slots for everything that is per micro-batch:
//
//   stage 0   F0 F1 .. B0 F2 B1 .. B2 | all-reduce, Adam
//   stage 1      F0 B0 F1 B1 F2 B2    | all-reduce, Adam
//
// Streams: 0 compute, 1 receive, 2 send, 3 reduce. A receive waits for the event that frees its slot; a send frees the
// slot of what it sent; the workspaces of forward and backward share their bytes.
Plan small_plan();

// Index of the named segment, instruction, buffer; fails the test when there is none.
SegmentId segment_named(const Plan& plan, const std::string& name);
Instruction& instruction_named(Plan& plan, const std::string& segment, const std::string& name);
Buffer& buffer_named(Role& role, const std::string& name);

// Every field and alternative filled at random, all indices in range. Not sound.
Plan random_plan(std::uint32_t seed);

// `text` of JSON with one small mistake: a number replaced, a piece cut out, doubled or swapped.
std::string mangled(const std::string& text, std::uint32_t seed);

}  // namespace foreshard
