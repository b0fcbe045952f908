# GPUs that a toolkit of this version compiles for, of those that the module supports.
function(foreshard_cuda_architectures toolkit result)
  set(known 80 90)
  if(toolkit VERSION_GREATER_EQUAL 12.8)
    list(APPEND known 100 120)
  endif()
  set(${result} ${known} PARENT_SCOPE)
endfunction()

# How the kernels of the module are compiled, and in which folder of the build it is. `architectures`: those that were asked for; empty: all that
# the toolkit knows. `quick`: for tests, which open the module but run no kernel: one GPU and hardly optimized, 27 s of processor time instead of
# 90 and half a minute for each further GPU. The program looks for its module beside itself, so such a module is elsewhere.
function(foreshard_cuda_kernels toolkit architectures flags quick result_architectures result_flags result_folder)
  set(folder "")
  if(quick)
    set(architectures 90)
    string(APPEND flags " -Xcicc -O1 -Xptxas -O1")
    set(folder quick_kernels)
  elseif(NOT architectures)
    foreshard_cuda_architectures(${toolkit} architectures)
  endif()
  string(REGEX REPLACE " +" " " flags "-O3 ${flags}")
  string(STRIP "${flags}" flags)
  set(${result_architectures} ${architectures} PARENT_SCOPE)
  set(${result_flags} "${flags}" PARENT_SCOPE)
  set(${result_folder} "${folder}" PARENT_SCOPE)
endfunction()
