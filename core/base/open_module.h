// Modules: shared libraries of the build that the program opens when it first needs them, because they need libraries that a machine may
// not have (CUDA) or that take long to load (SimGrid, 20 to 30 ms).
#pragma once

#include <string>

namespace foreshard {

// The path of lib`name`.so: in the program's folder, in the folder above (where test programs find it), or in lib/foreshard beside the
// program's folder. Throws DeviceError when it is in none; `operation` is what needs it and `advice` ends the message.
std::string module_path(const std::string& operation, const std::string& name, const std::string& advice = "");

// The address of `symbol` in the module, which stays open until the process ends. Throws what module_path throws, and DeviceError when the
// module cannot be opened or has no such symbol.
void* module_symbol(const std::string& operation, const std::string& name, const char* symbol, const std::string& advice = "");

}  // namespace foreshard
