# SimGrid and the module that uses it. It comes with pkg-config only; 3.32 (Debian 12) is the version foreshard is tested with.
find_package(PkgConfig REQUIRED)
pkg_check_modules(SIMGRID IMPORTED_TARGET simgrid)
if(NOT SIMGRID_FOUND)
  message(FATAL_ERROR "SimGrid was not found by pkg-config. On Debian 12: apt-get install libsimgrid-dev (3.32, the tested version)")
elseif(SIMGRID_VERSION VERSION_EQUAL 3.32)
  message(STATUS "SimGrid ${SIMGRID_VERSION} found, the tested version")
else()
  message(WARNING "SimGrid ${SIMGRID_VERSION} found; 3.32 is the tested version")
endif()

# The module, opened at the first simulation: SimGrid's libraries take 20 to 30 ms to load.
add_library(foreshard_simgrid MODULE sim/simgrid_clock.cpp core/base/error.cpp core/base/printable.cpp)
target_link_libraries(foreshard_simgrid PRIVATE PkgConfig::SIMGRID)
target_link_options(foreshard_simgrid PRIVATE -Wl,--no-undefined)
target_compile_options(foreshard_simgrid PRIVATE $<$<CONFIG:Release>:-O3>)
install(TARGETS foreshard_simgrid LIBRARY DESTINATION lib/foreshard)
