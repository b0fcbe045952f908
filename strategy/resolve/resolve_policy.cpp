// Fills in options that are left open from the strategy's runtime policy, and refuses options that contradict it.
#include "strategy/cost/runtime_policy.h"
#include "strategy/resolve/resolve.h"

namespace foreshard {

namespace {

std::optional<Infeasible> put_on_host(const RuntimePolicy& policy, bool on_host, const char* what, Space& home) {
  if (!on_host) return {};
  if (home != Space::Device && home != Space::PinnedHost)
    return Infeasible{
        .reason = "policy " + policy.name + " keeps " + what + " in host memory, --offload-" + what + " says " + name_of(home),
        .would_help = {std::string("no --offload-") + what, "--policy auto"}};
  home = Space::PinnedHost;
  return {};
}

std::optional<Infeasible> refuse_pipeline(const RuntimePolicy& policy, const Strategy& s) {
  if (!s.stages.empty()) return Infeasible{.reason = "stages with degrees of their own have no runtime policies"};
  if (!policy.keeps() || alternates(s)) return {};
  const std::string with = s.pp > 1 ? "pp " + std::to_string(s.pp)
                                    : "schedule " + std::string(name_of(s.pipeline.schedule.value_or(Schedule::Interleaved)));
  return Infeasible{.reason = "policy " + policy.name + " keeps parameters from a forward to its backward, but with " + with +
                              " other micro-batches come in between",
                    .would_help = {s.pp > 1 ? "--pp 1" : "--schedule 1f1b",
                                   "a policy that releases them after each pass, such as fsdp"}};
}

}  // namespace

std::optional<Infeasible> resolve_policy(Strategy& s) {
  const RuntimePolicy* policy = find_policy(s.policy);
  if (!policy) return {};  // one that is implied contradicts nothing
  if (auto refused = refuse_pipeline(*policy, s)) return refused;
  if (s.zero.stage != 0 && s.zero.stage != policy->zero)
    return Infeasible{.reason = "policy " + policy->name + " is ZeRO " + std::to_string(policy->zero) + ", --zero says " +
                                std::to_string(s.zero.stage),
                      .would_help = {"no --zero", "--policy auto"}};
  s.zero.stage = policy->zero;
  if (auto refused = put_on_host(*policy, policy->optimizer_on_host, "optimizer", s.offload.optimizer)) return refused;
  if (auto refused = put_on_host(*policy, policy->gradients_on_host, "gradients", s.offload.gradients)) return refused;
  if (auto refused = put_on_host(*policy, policy->parameters_on_host, "parameters", s.offload.parameters)) return refused;
  if (!s.communication.overlap) s.communication.overlap = policy->overlap;
  if (size_of(s.precision) < size_of(DType::F32) && !s.state_dtypes.grad) s.state_dtypes.grad = policy->grad_dtype;
  set_bucket_of_policy(s);
  return {};
}

void set_bucket_of_policy(Strategy& s) {
  const RuntimePolicy* policy = policy_of(s);
  if (policy && policy->bucket > 0 && s.communication.bucket.value == 0)
    s.communication.bucket = size_of(state_types(s).grad) * policy->bucket;
}

}  // namespace foreshard
