// Earlier checkpoints of a training, beside the newest: FILE is always the newest, FILE.step-300 the one after 300 steps.
#pragma once

#include <string>

namespace foreshard {

// Gives the checkpoint `path` a second name with its step (no bytes are copied), and removes what is older than the `keep` newest of such names.
// Throws DeviceError when the file system cannot.
void keep_checkpoints(const std::string& path, int step, int keep);

}  // namespace foreshard
