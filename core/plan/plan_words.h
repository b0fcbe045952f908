// The words that plan files use for the enums of a Plan, in the order of the enumerators.
#pragma once

#include "core/base/words.h"
#include "core/plan/plan.h"
