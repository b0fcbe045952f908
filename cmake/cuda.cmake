# The CUDA backend: launches, streams and communicator are part of exec and need no CUDA; the module beside the program, which
# needs the toolkit, is opened when --device cuda asks for it.
file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/exec/cuda/*.cpp)
target_sources(foreshard_exec PRIVATE ${cuda_sources})
