// Candidates of a search whose evaluation ends with an exception: a bug of ours. They are kept and reported, and the search goes on with the
// others. Internal to strategy/.
#pragma once

#include <functional>
#include <variant>

#include "strategy/search/search.h"

namespace foreshard {

// Calls work() and returns true. If it throws an exception that is about the strategy alone (all but std::bad_alloc, DeviceError and
// std::system_error, which would meet every other candidate, too), tells it to options.failed and returns false. Throws on where that is
// empty. `strategy` is called only then.
bool isolated(const SearchOptions& options, const std::function<Strategy()>& strategy, const std::function<void()>& work);

// Calls search(options), with options that collect the failures in SearchResult::failed. If the search finds nothing and some candidates
// failed: throws Bug with their reasons, or the failure itself if it was the same wrong input (Error) in all of them.
std::variant<SearchResult, Infeasible> collecting_failures(
    const SearchOptions& options, const std::function<std::variant<SearchResult, Infeasible>(const SearchOptions&)>& search);

}  // namespace foreshard
