#include "strategy/search/search_failures.h"

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "core/base/error.h"

namespace foreshard {

bool isolated(const SearchOptions& options, const std::function<Strategy()>& strategy, const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const DeviceError&) {
    throw;
  } catch (const std::system_error&) {
    throw;
  } catch (const std::exception&) {
    if (!options.failed) throw;
    options.failed(strategy(), std::current_exception());
    return false;
  }
}

namespace {

std::string words_of(const std::exception_ptr& problem) {
  try {
    std::rethrow_exception(problem);
  } catch (const std::exception& known) {
    return known.what();
  }
}

bool is_wrong_input(const std::exception_ptr& problem) {
  try {
    std::rethrow_exception(problem);
  } catch (const Error&) {
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

class CandidateFailures {
 public:
  void add(const Strategy& strategy, const std::exception_ptr& problem) {  // called by any thread
    const std::string why = words_of(problem);
    std::string key = to_json(strategy);
    const std::lock_guard lock(mutex_);
    const auto [place, is_new] = found_.try_emplace(why);
    Found& found = place->second;
    ++found.candidate.candidates;
    if (!is_new && found.key <= key) return;
    found.candidate.strategy = strategy, found.candidate.why = why;
    found.key = std::move(key), found.problem = problem;
  }

  std::vector<FailedCandidate> all() const {
    std::vector<FailedCandidate> all;
    for (const auto& [why, found] : found_) all.push_back(found.candidate);
    std::ranges::stable_sort(all, std::greater{}, &FailedCandidate::candidates);
    return all;
  }

  void rethrow(const std::string& why_none) const {  // unless there are none
    if (found_.empty()) return;
    const std::exception_ptr& first = found_.begin()->second.problem;
    if (found_.size() == 1 && is_wrong_input(first)) std::rethrow_exception(first);
    std::string words;
    for (const auto& [why, found] : found_) words += (words.empty() ? "" : "; ") + why;
    throw Bug(words + "; the search found nothing beside it (" + why_none + ")");
  }

 private:
  struct Found {
    FailedCandidate candidate = {};
    std::string key = {};  // the strategy as JSON: the least is kept, whatever thread met it first
    std::exception_ptr problem = {};
  };
  std::mutex mutex_ = {};
  std::map<std::string, Found> found_ = {};  // [reason]
};

}  // namespace

std::variant<SearchResult, Infeasible> collecting_failures(
    const SearchOptions& options, const std::function<std::variant<SearchResult, Infeasible>(const SearchOptions&)>& search) {
  CandidateFailures failures;
  SearchOptions collecting = options;
  collecting.failed = [&](const Strategy& strategy, const std::exception_ptr& problem) { failures.add(strategy, problem); };
  auto answer = search(collecting);
  if (auto* result = std::get_if<SearchResult>(&answer))
    result->failed = failures.all();
  else
    failures.rethrow(std::get<Infeasible>(answer).reason);
  return answer;
}

}  // namespace foreshard
