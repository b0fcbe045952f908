// Strategies drawn over all options together: every plan that is lowered is sound, and trains what one device trains: loss, gradients and
// weights after two steps, in double precision.
//
//   synchronous, nothing lost            one device
//   asynchronous servers, nothing lost   one server whose workers are one device each
//   codecs, capacities of experts,       the same cut of the work without recomputation, offload, overlap and other choices that
//   stale weights                        must not change a number; tests of each codec and schedule compare that with one device
//   fewer than 64 bits                   the same, within the rounding of the format
//
// FORESHARD_PLANS_TRAINED: how many plans are trained; FORESHARD_PLANS_FIRST, FORESHARD_PLANS_LAST: the numbers of the first draw and of the
// one behind the last; FORESHARD_SEED; FORESHARD_PLANS_SHOWN: prints the draws; FORESHARD_PLANS_WITH="recompute=none zero=0": changes them, to
// find what a failure needs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <sstream>

#include "core/base/error.h"
#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "strategy/tune/tune.h"
#include "tests/drawn_strategy.h"
#include "tests/exec/mixture_models.h"
#include "tests/exec/modern_models.h"
#include "tests/exec/training.h"

namespace foreshard::drawn_plans_test {
namespace {

struct DrawnModel {
  Model model = {};
  drawn::Bounds bounds = {};
  bool norms_over_batch = false;  // whose statistics are of a micro-batch
};

const std::vector<DrawnModel>& drawn_models() {
  static const std::vector<DrawnModel> all = [] {
    std::vector<DrawnModel> models;
    for (const Model& model : {tiny_gpt(), tiny_gpt(), tiny_gpt(false), tiny_llama(), tiny_llama(), tiny_bert()})
      models.push_back({.model = model});
    models.push_back({.model = tiny_mlp(), .bounds = {.layers = 7, .most_tp = 4, .sequences = false}});
    models.push_back(
        {.model = tiny_cnn(), .bounds = {.layers = 20, .most_tp = 1, .sequences = false}, .norms_over_batch = true});
    for (const ModernModel& which : modern_models()) models.push_back({.model = modern_model(which)});
    for (const ModernModel& which : mixtures()) {
      DrawnModel& model = models.emplace_back(DrawnModel{.model = modern_model(which), .norms_over_batch = true});
      model.bounds.experts = 8;
    }
    for (DrawnModel& model : models)
      if (const auto* list = std::get_if<LayerList>(&model.model.shape))
        model.bounds.layers = static_cast<int>(list->layers.size());
    return models;
  }();
  return all;
}

bool is_mixture(const DrawnModel& of) { return of.bounds.experts > 0; }

bool coded(const Strategy& s) {
  return s.communication.gradients.any() || s.communication.activations.any() || s.communication.dispatch.any();
}
bool lossy(const Strategy& s) { return coded(s) || s.experts.capacity > 0; }
bool in_sixty_four_bits(const Strategy& s) {
  const StateTypes types = state_types(s);
  return types.compute == DType::F64 && types.param == DType::F64 && types.grad == DType::F64 && types.state == DType::F64;
}
bool stale(const Strategy& s) {
  using enum Schedule;
  const Schedule schedule = s.pipeline.schedule.value_or(OneFOneB);
  return schedule == PipeDream || schedule == PipeDream2BW || schedule == PipeMare;
}

// One device that computes what `resolved` asks for.
Strategy one_device(const DrawnModel& of, const Strategy& resolved) {
  Strategy one{.dp = 1};
  one.batch = resolved.batch;
  if (!of.norms_over_batch) one.batch.micro = resolved.batch.global % 2 == 0 ? 2 : 1;
  one.experts.load = {.kind = ExpertLoad::Kind::Worst};
  one.precision = resolved.precision, one.state_dtypes = resolved.state_dtypes;
  one.dropout = resolved.dropout.value_or(0);
  one.optimizer = resolved.optimizer;
  one.optimizer.clip_norm = resolved.optimizer.clip_norm.value_or(0), one.optimizer.loss_scale = 1;
  one.vocab_multiple = std::max<std::int64_t>(1, resolved.vocab_multiple) * widest_tp(resolved);
  return one;
}

// As many workers of one device each, and one server: with several servers, and with workers of several ranks, weights are as old.
Strategy one_server(Strategy one, const Strategy& resolved) {
  one.dp = resolved.dp, one.batch = resolved.batch;
  one.communication.asynchronous = true;
  return one;
}

// The same cut and the same codes, and none of the choices that must not change a number. Codes are made of buckets, and weights are stale by
// the order of the pipeline: what decides on these stays.
Strategy plain(const Strategy& resolved) {
  Strategy one = resolved;
  if (one.pipeline.schedule != Schedule::PipeMare) one.recompute = {};  // which recomputes with newer weights
  one.offload.activations = OffloadedActivations::None, one.offload.activation_layers = 0;
  one.placement = {}, one.device_memory = {};
  if (in_sixty_four_bits(one) && !coded(one)) one.optimizer.loss_scale = 1;
  if (one.communication.gradients.codec != Codec::None || stale(one) || !one.stages.empty()) return one;
  one.offload = {}, one.policy = "none", one.zero = {};
  one.pp = one.virtual_stages = 1, one.pipeline = {};
  one.communication.overlap = Overlap{.gradients = false, .p2p = false};
  return one;
}

// Where layers are updated as soon as their gradients are complete, these are gone at the end of the step, and gradients that are away are
// clipped in a copy: the weights are compared.
void forget_gradients(Execution& a, Execution& b) {
  for (Execution* of : {&a, &b})
    for (WholeTensor& gradient : of->gradients) gradient = {};
}

// Workers have older copies than the servers, whose values are compared.
void forget_older_copies(Execution& a, Execution& b) {
  for (Execution* of : {&a, &b})
    for (std::vector<WholeTensor>* tensors : {&of->values, &of->gradients})
      for (WholeTensor& tensor : *tensors) tensor.largest_difference = 0;
}

class DrawnPlan {
 public:
  explicit DrawnPlan(std::uint32_t seed) : dice_(seed), model_(dice_.any(drawn_models())) {
    std::vector<std::string> leave = {"framework_memory", "expert_load"};
    if (!dice_.one_in(6)) leave.insert(leave.end(), {"param_dtype", "grad_dtype", "state_dtype", "precision"});
    draw_ = drawn::draw_strategy(dice_, model_.bounds, leave);
    Strategy& s = draw_.strategy;
    if (std::ranges::count(leave, "precision") > 0) s.precision = DType::F64;
    if (is_mixture(model_) && s.precision == DType::F8)
      s.precision = DType::BF16;  // the host has no grouped products in 8 bits
    if (is_mixture(model_)) s.experts.load = {.kind = ExpertLoad::Kind::Worst};
    if (dice_.one_in(12)) s.framework = dice_.any(framework_names());
    if (const char* changes = std::getenv("FORESHARD_PLANS_WITH")) {
      std::istringstream words(changes);
      for (std::string word; words >> word;)
        set_option(s, word.substr(0, word.find('=')), word.substr(word.find('=') + 1), "FORESHARD_PLANS_WITH");
    }
  }
  const std::string words() const { return model_.model.name + ": " + draw_.options; }

  // Empty: the draw is refused, with the reason.
  std::optional<Lowered> lower() {
    try {
      auto answer = tuned_plan(model_.model, cluster(draw_.strategy), draw_.strategy);
      if (auto* lowered = std::get_if<Lowered>(&answer)) return std::move(*lowered);
      refused_ = std::get<Infeasible>(answer).reason;
    } catch (const Error& error) {
      refused_ = error.what();
    }
    return {};
  }
  const std::string& refused() const { return refused_; }

  void expect_trains_alike(const Lowered& lowered) const {
    const Strategy& resolved = lowered.strategy;
    const bool bits = in_sixty_four_bits(resolved), exact = bits && !lossy(resolved) && !stale(resolved);
    ExecuteOptions options = settings(resolved);
    options.checks.poison = true;
    auto done = std::get<Execution>(execute(lowered.plan, options));
    const bool served = resolved.communication.asynchronous;
    if (served && !exact) return;
    const Strategy reference = served  ? one_server(one_device(model_, resolved), resolved)
                               : exact ? one_device(model_, resolved)
                                       : plain(resolved);
    auto one = tuned_plan(model_.model, cluster(reference), reference, {.ignore_memory = true});
    ASSERT_TRUE(std::holds_alternative<Lowered>(one)) << "the reference is refused: " << std::get<Infeasible>(one).reason;
    const Lowered& of = std::get<Lowered>(one);
    auto expected = std::get<Execution>(execute(of.plan, settings(reference)));
    divide_gradients(done, done.steps.back().loss_scale.value_or(resolved.optimizer.loss_scale));
    divide_gradients(expected, expected.steps.back().loss_scale.value_or(reference.optimizer.loss_scale));
    const bool clipped_away = resolved.offload.gradients != Space::Device && resolved.optimizer.clip_norm.value_or(0) > 0;
    if (resolved.offload.update_per_layer || clipped_away) forget_gradients(done, expected);
    if (served) forget_older_copies(done, expected);
    const Difference apart = difference(done, expected);
    const double rounding = is_code(resolved.precision) ? 0.3 : state_types(resolved).compute == DType::F32 ? 1e-3 : 0.2;
    const double tolerance = bits ? 1e-10 : rounding;
    EXPECT_LE(apart.loss, bits ? 1e-12 : tolerance / 10);
    if (!bits && is_mixture(model_)) return;  // a token may go to another expert
    EXPECT_LE(apart.gradients, tolerance) << apart.worst;
    if (!bits) return;  // Adam makes steps of equal size of gradients that are nothing but rounding errors
    EXPECT_LE(apart.values, tolerance) << apart.worst;
  }

 private:
  static const Cluster& cluster(const Strategy& s) {
    static const Cluster sixteen_bits = load_cluster("dgx-a100-x2"), eight_bits = load_cluster("dgx-h100-x2");
    return s.precision == DType::F8 ? eight_bits : sixteen_bits;
  }
  static ExecuteOptions settings(const Strategy& resolved) {
    ExecuteOptions options = training(2);
    if (!in_sixty_four_bits(resolved)) options.optimizer.eps = 1e-2;
    options.patience = std::chrono::milliseconds(60000);
    return options;
  }

  drawn::Dice dice_;
  const DrawnModel& model_;
  drawn::Draw draw_ = {};
  std::string refused_ = {};
};

}  // namespace

TEST(DrawnPlans, EveryOptionIsDrawn) {
  for (const StrategyOption& option : strategy_options())
    EXPECT_EQ(std::ranges::count(drawn::option_values(), option.path, &drawn::OptionValues::path), 1) << option.path;
  for (const drawn::OptionValues& option : drawn::option_values()) {
    EXPECT_NE(find_option(option.path), nullptr) << option.path;
    EXPECT_NE(option.values.empty(), option.because.empty()) << option.path;
    Strategy strategy;
    for (const std::string& value : option.values)
      EXPECT_NO_THROW(set_option(strategy, option.path, value, "drawn")) << option.path << " " << value;
  }
}

static bool lowered_and_trained(DrawnPlan& draw) {
  const auto lowered = draw.lower();
  if (!lowered) return false;
  const auto defects = check_plan(lowered->plan);
  EXPECT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
  if (defects.empty()) draw.expect_trains_alike(*lowered);
  return true;
}

TEST(DrawnPlans, TrainWhatOneDeviceTrains) {
  const int count = drawn::number_of("FORESHARD_PLANS_TRAINED", 80), seed = drawn::number_of("FORESHARD_SEED", 60) * 1'000'000;
  const bool shows = std::getenv("FORESHARD_PLANS_SHOWN") != nullptr;
  int trained = 0, index = drawn::number_of("FORESHARD_PLANS_FIRST", 0);
  std::map<std::string, int> refused;
  const int last = drawn::number_of("FORESHARD_PLANS_LAST", std::numeric_limits<int>::max());
  for (; trained < count && index < last; ++index) {
    DrawnPlan draw(static_cast<std::uint32_t>(seed + index));
    SCOPED_TRACE("draw " + std::to_string(index) + ", " + draw.words());
    if (shows) std::fprintf(stderr, "draw %d, %s\n", index, draw.words().c_str());
    try {
      trained += lowered_and_trained(draw);
    } catch (const std::exception& thrown) {
      ADD_FAILURE() << thrown.what();
    }
    if (!draw.refused().empty()) ++refused[draw.refused()];
    if (shows) std::fflush(stdout);
  }
  if (shows)
    for (const auto& [reason, times] : refused) std::fprintf(stderr, "refused %d: %s\n", times, reason.c_str());
  std::printf("%d plans trained of %d draws\n", trained, index);
  EXPECT_GT(trained * 5, index);
}

}  // namespace foreshard::drawn_plans_test
