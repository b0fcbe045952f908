// Every kernel, for the one file of the module and the one of the emulator that compile them. Each file names its plain reference on the host; shapes of
// arrays stand in exec/cuda/kernel_args.h, bytes and the limit at each kernel or at the body that it runs by packs.
#pragma once

#include "exec/cuda/kernel_list.h"
#include "exec/cuda/kernels/codec.h"
#include "exec/cuda/kernels/column_sums.h"
#include "exec/cuda/kernels/context_parallel.h"
#include "exec/cuda/kernels/dropout.h"
#include "exec/cuda/kernels/eight_bits.h"
#include "exec/cuda/kernels/elements.h"
#include "exec/cuda/kernels/embedding.h"
#include "exec/cuda/kernels/flash.h"
#include "exec/cuda/kernels/largest.h"
#include "exec/cuda/kernels/loss.h"
#include "exec/cuda/kernels/norm.h"
#include "exec/cuda/kernels/pictures.h"
#include "exec/cuda/kernels/rope.h"
#include "exec/cuda/kernels/softmax.h"
#include "exec/cuda/kernels/update.h"
