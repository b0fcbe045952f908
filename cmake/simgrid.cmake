# SimGrid comes with pkg-config only. 3.32 (Debian 12) is the version foreshard is tested with.
find_package(PkgConfig REQUIRED)
pkg_check_modules(SIMGRID REQUIRED IMPORTED_TARGET simgrid)
if(SIMGRID_VERSION VERSION_EQUAL 3.32)
  message(STATUS "SimGrid ${SIMGRID_VERSION} found, the tested version")
else()
  message(WARNING "SimGrid ${SIMGRID_VERSION} found; 3.32 is the tested version")
endif()
