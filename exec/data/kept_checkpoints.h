// Earlier checkpoints of a training run: FILE is always the newest, FILE.step-300 is the one after 300 steps.
#pragma once

#include <string>

namespace foreshard {

// Gives the checkpoint `path` a second name with its step (a hard link, no copy), and removes all such names except the `keep` newest.
// Where `path` is a symbolic link, the names lie beside the file that it leads to. Throws DeviceError if the file system does not support it.
void keep_checkpoints(const std::string& path, int step, int keep);

}  // namespace foreshard
