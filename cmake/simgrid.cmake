# SimGrid and the module that uses it. It comes with pkg-config only. foreshard is tested with 3.32 (Debian 12), 4.0 (Debian 13)
# and 3.35 (compiled from its sources).
find_package(PkgConfig REQUIRED)
pkg_check_modules(SIMGRID IMPORTED_TARGET simgrid)
if(NOT SIMGRID_FOUND)
  message(FATAL_ERROR "SimGrid was not found by pkg-config. On Debian: apt-get install libsimgrid-dev")
elseif(SIMGRID_VERSION MATCHES "^(3\\.32|3\\.35|4\\.0)(\\.|$)")
  message(STATUS "SimGrid ${SIMGRID_VERSION} found, a tested version")
else()
  message(WARNING "SimGrid ${SIMGRID_VERSION} found; 3.32, 3.35 and 4.0 are the tested versions")
endif()

# The module, opened at the first simulation: SimGrid's libraries take 20 to 30 ms to load.
add_library(foreshard_simgrid MODULE sim/simgrid_clock.cpp core/base/error.cpp core/base/printable.cpp)
target_link_libraries(foreshard_simgrid PRIVATE PkgConfig::SIMGRID)
target_link_options(foreshard_simgrid PRIVATE -Wl,--no-undefined)
target_compile_options(foreshard_simgrid PRIVATE $<$<CONFIG:Release>:-O3>)
install(TARGETS foreshard_simgrid LIBRARY DESTINATION lib/foreshard)
