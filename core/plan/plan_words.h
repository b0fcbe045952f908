// The words that plan and result files use for the enums of a Plan, in the order of the enumerators.
#pragma once

#include "core/base/words.h"
#include "core/plan/plan.h"
#include "core/result/trace.h"
