// All CUDA kernels. Two files include it and compile them: one of the CUDA module and one of the emulator. Each header of this folder names
// the host code that computes the same (the reference of the tests). exec/cuda/kernel_args.h describes the arguments. The comment of a
// kernel, or of its version with packs, states the bytes that it reads and writes per element, and what bounds its speed on an H100.
#pragma once

#include "exec/cuda/kernel_list.h"
#include "exec/cuda/kernels/codec.h"
#include "exec/cuda/kernels/column_sums.h"
#include "exec/cuda/kernels/context_parallel.h"
#include "exec/cuda/kernels/dropout.h"
#include "exec/cuda/kernels/eight_bits.h"
#include "exec/cuda/kernels/elements.h"
#include "exec/cuda/kernels/embedding.h"
#include "exec/cuda/kernels/experts.h"
#include "exec/cuda/kernels/flash.h"
#include "exec/cuda/kernels/grouped.h"
#include "exec/cuda/kernels/heads.h"
#include "exec/cuda/kernels/largest.h"
#include "exec/cuda/kernels/loss.h"
#include "exec/cuda/kernels/norm.h"
#include "exec/cuda/kernels/pictures.h"
#include "exec/cuda/kernels/rope.h"
#include "exec/cuda/kernels/softmax.h"
#include "exec/cuda/kernels/update.h"
