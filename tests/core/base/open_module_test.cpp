#include "core/base/open_module.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace foreshard::open_module_test {

static std::string said(auto&& call) {
  try {
    call();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "nothing";
}

TEST(OpenModule, WhatIsMissingIsSaidWithAdvice) {
  const std::string missing = said([] { module_path("fly", "no_wings", "; walk"); });
  EXPECT_EQ(missing.find("fly failed: libno_wings.so is neither beside /"), 0) << missing;
  EXPECT_TRUE(missing.ends_with("/lib/foreshard; walk")) << missing;
  EXPECT_EQ(said([] { module_symbol("fly", "no_wings", "flap", "; walk"); }), missing);
}

// Tests depend on the module of SimGrid.
TEST(OpenModule, AModuleInTheFolderAboveIsFoundAndHasItsSymbols) {
  const std::string path = module_path("a test", "foreshard_simgrid");
  EXPECT_TRUE(path.ends_with("/libforeshard_simgrid.so")) << path;
  EXPECT_NE(module_symbol("a test", "foreshard_simgrid", "foreshard_simgrid_clock"), nullptr);
  EXPECT_EQ(said([] { module_symbol("a test", "foreshard_simgrid", "flap"); }), "dlsym in " + path + " failed: no flap");
}

}  // namespace foreshard::open_module_test
