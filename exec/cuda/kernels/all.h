// Every kernel, for the one file of the module and the one of the emulator that compile them.
#pragma once

#include "exec/cuda/kernel_list.h"
#include "exec/cuda/kernels/elements.h"
#include "exec/cuda/kernels/ends.h"
#include "exec/cuda/kernels/flash.h"
#include "exec/cuda/kernels/pictures.h"
#include "exec/cuda/kernels/rows.h"
