# The CUDA backend: launches, streams and communicator are part of exec and need no CUDA. The module beside the program, which needs
# the toolkit (nvcc, cudart, cuBLASLt), is opened when --device cuda asks for it; without it exec/no_cuda.cpp says what is missing.
set(FORESHARD_CUDA AUTO CACHE STRING "The CUDA module, libforeshard_cuda.so: AUTO, ON or OFF")
set_property(CACHE FORESHARD_CUDA PROPERTY STRINGS AUTO ON OFF)
set(FORESHARD_CUDA_ARCHITECTURES "" CACHE STRING "GPUs that the module is compiled for, the last one also as PTX; empty: all that the toolkit knows of 80;90;100;120")
set(FORESHARD_CUDA_FLAGS "" CACHE STRING "Further options of nvcc for the kernels")
option(FORESHARD_CUDA_QUICK "A module for tests only: kernels for one GPU, hardly optimized, in a folder where no program looks for it" OFF)
include(${CMAKE_CURRENT_LIST_DIR}/cuda_architectures.cmake)

set(FORESHARD_CUDA_BUILT OFF)
if(NOT FORESHARD_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "FORESHARD_CUDA: found ${FORESHARD_CUDA}, expected AUTO, ON or OFF")
elseif(FORESHARD_CUDA STREQUAL "OFF")
  message(STATUS "FORESHARD_CUDA: off")
else()
  find_package(CUDAToolkit 12 QUIET)
  set(cuda_missing "")
  if(NOT CUDAToolkit_FOUND)
    set(cuda_missing "the CUDA toolkit 12 or later")
  elseif(NOT EXISTS "${CUDAToolkit_NVCC_EXECUTABLE}")
    set(cuda_missing "nvcc")
  elseif(NOT TARGET CUDA::cudart_static)
    set(cuda_missing "libcudart_static.a")
  elseif(NOT TARGET CUDA::cublasLt)
    set(cuda_missing "libcublasLt.so")
  endif()
  if(cuda_missing STREQUAL "")
    set(FORESHARD_CUDA_BUILT ON)
    foreshard_cuda_kernels(${CUDAToolkit_VERSION} "${FORESHARD_CUDA_ARCHITECTURES}" "${FORESHARD_CUDA_FLAGS}" ${FORESHARD_CUDA_QUICK}
                           cuda_architectures cuda_options cuda_folder)
    message(STATUS "FORESHARD_CUDA: toolkit ${CUDAToolkit_VERSION}, for sm ${cuda_architectures}, ${cuda_options}")
  elseif(FORESHARD_CUDA STREQUAL "ON")
    message(FATAL_ERROR "FORESHARD_CUDA is ON, but ${cuda_missing} was not found")
  else()
    message(STATUS "FORESHARD_CUDA: not built, ${cuda_missing} was not found")
  endif()
endif()

file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/exec/cuda/*.cpp)
get_target_property(exec_sources foreshard_exec_rest SOURCES)
if(FORESHARD_CUDA_BUILT)
  list(FILTER exec_sources EXCLUDE REGEX "/no_cuda\\.cpp$")
else()
  list(FILTER cuda_sources EXCLUDE REGEX "/load_cuda\\.cpp$")
endif()
set_property(TARGET foreshard_exec_rest PROPERTY SOURCES ${exec_sources} ${cuda_sources})
# All but load_cuda.cpp, which a program may link before the library (foreshard_twin in tests/).
set(united ${cuda_sources})
list(FILTER united EXCLUDE REGEX "/load_cuda\\.cpp$")
foreshard_unite(foreshard_exec_rest ${united})

if(FORESHARD_CUDA_BUILT)
  # One device file, compiled by nvcc itself: the compiler options of the rest are none of its business.
  set(kernels ${PROJECT_SOURCE_DIR}/exec/cuda/module/kernels.cu)
  cmake_path(APPEND PROJECT_BINARY_DIR "${cuda_folder}" OUTPUT_VARIABLE module_folder)
  string(REGEX REPLACE "/$" "" module_folder "${module_folder}")
  set(kernels_object ${module_folder}/foreshard_kernels.o)
  if(FORESHARD_CUDA_QUICK)  # one beside the program would be of an earlier build: better none
    file(MAKE_DIRECTORY ${module_folder})
    file(REMOVE ${PROJECT_BINARY_DIR}/libforeshard_cuda.so)
  endif()
  set(cuda_targets "")
  foreach(architecture ${cuda_architectures})
    list(APPEND cuda_targets "-gencode=arch=compute_${architecture},code=sm_${architecture}")
  endforeach()
  separate_arguments(cuda_flags UNIX_COMMAND "${cuda_options}")
  list(GET cuda_architectures -1 newest)
  list(APPEND cuda_targets "-gencode=arch=compute_${newest},code=compute_${newest}")
  add_custom_command(
    OUTPUT ${kernels_object}
    COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} -std=c++20 -ccbin ${CMAKE_CXX_COMPILER} -I${PROJECT_SOURCE_DIR} ${cuda_targets} ${cuda_flags}
            -Xcompiler=-fPIC -MD -MF ${kernels_object}.d -c ${kernels} -o ${kernels_object}
    DEPENDS ${kernels}
    DEPFILE ${kernels_object}.d
    COMMENT "Compiling kernels.cu for sm ${cuda_architectures}"
    VERBATIM)
  add_library(foreshard_cuda MODULE exec/cuda/module/cuda_runtime.cpp exec/cuda/module/open_attention.cpp exec/cuda/module/products.cpp exec/cuda/product_form.cpp exec/cuda/numa_cpus.cpp
                                    ${kernels_object})
  target_link_libraries(foreshard_cuda PRIVATE CUDA::cudart_static CUDA::cublasLt)
  list(JOIN cuda_architectures " " kernels_for)
  set(FORESHARD_KERNEL_BUILD "${kernels_for}|${cuda_options}")
  target_compile_definitions(foreshard_cuda PRIVATE FORESHARD_KERNEL_BUILD="${FORESHARD_KERNEL_BUILD}")  # `doctor` prints it
  set_target_properties(foreshard_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${module_folder})
  # now: a function that a library lacks is an error of opening the module, not the end of the program when it is called
  target_link_options(foreshard_cuda PRIVATE -Wl,--no-undefined -Wl,-z,now)
  set_target_properties(foreshard_cuda PROPERTIES CXX_VISIBILITY_PRESET default)
  install(TARGETS foreshard_cuda LIBRARY DESTINATION lib/foreshard)

  # Attention by cuDNN: a module of its own, from headers alone (scripts/cudnn_headers.sh); libcudnn is opened when it is asked for.
  find_path(FORESHARD_CUDNN_FRONTEND cudnn_frontend.h
            HINTS ${PROJECT_BINARY_DIR}/cudnn/include ${PROJECT_SOURCE_DIR}/build/cudnn/include ${CUDAToolkit_INCLUDE_DIRS})
  find_path(FORESHARD_CUDNN cudnn.h HINTS ${PROJECT_BINARY_DIR}/cudnn/include ${PROJECT_SOURCE_DIR}/build/cudnn/include ${CUDAToolkit_INCLUDE_DIRS})
  if(FORESHARD_CUDNN_FRONTEND AND FORESHARD_CUDNN)
    message(STATUS "FORESHARD_CUDA: attention by cuDNN, its headers: ${FORESHARD_CUDNN_FRONTEND}, ${FORESHARD_CUDNN}")
    add_library(foreshard_cudnn MODULE exec/cuda/module/cudnn_attention.cpp)
    target_include_directories(foreshard_cudnn SYSTEM PRIVATE ${FORESHARD_CUDNN_FRONTEND} ${FORESHARD_CUDNN} ${CUDAToolkit_INCLUDE_DIRS})
    target_compile_options(foreshard_cudnn PRIVATE -O1 -w)  # 21 s at -O1, nearly all of them theirs
    target_link_libraries(foreshard_cudnn PRIVATE ${CMAKE_DL_LIBS})
    set_target_properties(foreshard_cudnn PROPERTIES CXX_VISIBILITY_PRESET hidden INSTALL_RPATH "${CUDAToolkit_LIBRARY_DIR}")
    install(TARGETS foreshard_cudnn LIBRARY DESTINATION lib/foreshard)
  else()
    message(STATUS "FORESHARD_CUDA: attention by our own kernels; scripts/cudnn_headers.sh fetches the headers of cuDNN's")
  endif()
endif()
