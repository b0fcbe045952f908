// What many tests include, compiled once per build (-DFORESHARD_PCH=ON). Each test includes what it uses all the same.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "core/cluster_file/cluster_file.h"
#include "core/json/json.h"
#include "core/plan/plan.h"
#include "core/result/result.h"
#include "core/strategy/strategy.h"
#include "replay/light_clock.h"
#include "replay/replay.h"
#include "strategy/lower/lower.h"
#include "strategy/search/search.h"
#include "strategy/tune/tune.h"
