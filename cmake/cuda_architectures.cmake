# GPUs that a toolkit of this version compiles for, of those that the module supports.
function(foreshard_cuda_architectures toolkit result)
  set(known 80 90)
  if(toolkit VERSION_GREATER_EQUAL 12.8)
    list(APPEND known 100 120)
  endif()
  set(${result} ${known} PARENT_SCOPE)
endfunction()
