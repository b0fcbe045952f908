// The operators of a mixture of experts against plain loops written from core/op/experts.h: which experts are chosen and how much each
// counts, which rows go where, what is dropped, and a product for each expert. Gradients: host_experts_gradient_test.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "exec/host/host_experts.h"
#include "tests/exec/expert_arrays.h"

namespace foreshard::host_experts_test {
namespace {

using Score = ops::Route::Score;

// ---- where experts are -----------------------------------------------------------------------------------------------------------

// Within a part, its experts and ranks are as in a group of their own: by its number an expert is on the same rank as by all of them.
TEST(HostExperts, ExpertsAreNumberedInTheirPartAsInAGroupOfItsOwn) {
  for (const bool dealt : {false, true})
    for (const std::int64_t parts : {1, 2, 3, 6}) {
      const host::SentTokens sent{.op = {.ranks = 6, .dealt = dealt}, .chosen = 2, .experts = 24, .parts = parts, .room = 4};
      const host::ChoiceRows inside{.experts = 24 / parts, .ranks = 6 / parts, .dealt = dealt};
      std::vector<int> taken(24, 0);
      for (std::int64_t expert = 0; expert < 24; ++expert) {
        const std::int64_t number = sent.number(expert), part = sent.part(expert);
        ++taken[static_cast<std::size_t>(part * inside.experts + number)];
        EXPECT_EQ(part * inside.ranks + inside.place(number) / 4, sent.rank(expert)) << parts << " " << expert;
      }
      EXPECT_EQ(taken, std::vector<int>(24, 1)) << parts;
    }
}

// ---- other ways to the experts ---------------------------------------------------------------------------------------------------

// Of gathered tokens a rank makes the rows that an all-to-all would bring: for each source those that it would send to the rank.
TEST(HostExperts, GatheredTokensGiveTheRowsOfAnAllToAll) {
  for (const bool dealt : {false, true})
    for (const std::int64_t capacity : {0, 2})
      for (const std::int64_t room : {3, 12}) {
        const Routing sizes{.tokens = 6, .experts = 6, .chosen = 2, .hidden = 2, .ranks = 3, .room = room};
        const ops::Dispatch op{.capacity = capacity, .dealt = dealt};
        const std::int64_t block = room * sizes.hidden;
        std::vector<Sent> of;
        std::vector<double> x, experts;
        for (std::uint64_t source = 0; source < 3; ++source) {
          const std::vector<Array> reads = random_dispatch(op, sizes, 5 + 10 * source);
          of.push_back(dispatch(op, sizes, reads));
          const std::vector<double> tokens = reads[0].values(), chosen = reads[1].values();
          x.insert(x.end(), tokens.begin(), tokens.end()), experts.insert(experts.end(), chosen.begin(), chosen.end());
        }
        for (int own = 0; own < 3; ++own) {
          const Sent here = dispatch_gathered(op, sizes, 3, own, {Array(x, DType::F64), Array(experts, DType::I64)});
          for (std::int64_t s = 0; s < 3; ++s) {
            const Sent& sent = of[static_cast<std::size_t>(s)];
            for (std::int64_t i = 0; i < block; ++i) EXPECT_EQ(here.rows.at(s * block + i), sent.rows.at(own * block + i));
            for (std::int64_t e = 0; e < 2; ++e) EXPECT_EQ(here.counts.at(s * 2 + e), sent.counts.at(own * 2 + e));
            for (std::int64_t i = 0; i < sizes.choices(); ++i) {
              const auto place = static_cast<std::int64_t>(sent.places.at(i));
              const bool mine = place >= own * room && place < (own + 1) * room;
              EXPECT_EQ(here.places.at(s * sizes.choices() + i),
                        mine ? static_cast<double>(place - own * room + s * room) : -1.0);
            }
          }
        }
      }
}

// Experts 0 to 3 on part 0, 4 to 7 on part 1, two ranks each. Token 0 chose 1 and 6, token 1 chose 5 and 4, token 2 chose 6 and 7.
TEST(HostExperts, ATokenGoesOnceToEachPart) {
  const Routing sizes{.tokens = 3, .experts = 8, .chosen = 2, .hidden = 1, .ranks = 4, .room = 3};
  const std::vector<Array> reads = {Array({10, 20, 30}, DType::F64), Array({.1, .2, .3, .4, .5, .6}, DType::F64),
                                    Array({1, 6, 5, 4, 6, 7}, DType::I64)};
  const SentOnce sent = send_once({.ranks = 4}, sizes, 2, reads);
  EXPECT_EQ(sent.rows.values(), (std::vector<double>{10, 0, 0, 10, 20, 30}));
  EXPECT_EQ(sent.places.values(), (std::vector<double>{0, 3, -1, 4, -1, 5}));
  EXPECT_EQ(sent.experts.values(), (std::vector<double>{1, -1, -1, -1, -1, -1, -1, 2, 1, 0, 2, 3}));
  EXPECT_EQ(sent.weights.values(), (std::vector<double>{.1, 0, 0, 0, 0, 0, 0, .2, .3, .4, .5, .6}));
  // At most one token of an expert: the second that chose 6 goes for 7 only.
  EXPECT_EQ(send_once({.capacity = 1, .ranks = 4}, sizes, 2, reads).experts.values(),
            (std::vector<double>{1, -1, -1, -1, -1, -1, -1, 2, 1, 0, -1, 3}));
  // Dealt out, experts 0, 1, 4, 5 are on part 0 as its 0, 1, 2, 3 (on ranks 0, 1, 0, 1); 2, 3, 6, 7 on part 1.
  const SentOnce dealt = send_once({.ranks = 4, .dealt = true}, sizes, 2, reads);
  EXPECT_EQ(dealt.experts.values(), (std::vector<double>{1, -1, 3, 2, -1, -1, -1, 2, 2, 3, -1, -1}));
  // A part that is full takes no more tokens.
  Routing small = sizes;
  small.room = 2;
  EXPECT_EQ(send_once({.ranks = 4}, small, 2, reads).places.values(), (std::vector<double>{0, 2, -1, 3, -1, -1}));
}

// A choice of no expert has no row.
TEST(HostExperts, ExpertsBelowZeroAreNone) {
  const Routing sizes{.tokens = 2, .experts = 2, .chosen = 2, .hidden = 1, .ranks = 1, .room = 4};
  const Sent sent = dispatch({}, sizes, {Array({7, 9}, DType::F64), Array({1, -1, -1, 0}, DType::I64)});
  EXPECT_EQ(sent.places.values(), (std::vector<double>{1, -1, -1, 0}));
  EXPECT_EQ(sent.rows.values(), (std::vector<double>{9, 7, 0, 0}));
  EXPECT_EQ(sent.counts.values(), (std::vector<double>{1, 1}));
}

// ---- the choice ------------------------------------------------------------------------------------------------------------------

Routed routed_once(const ops::Route& op, const std::vector<double>& logits) {
  const auto experts = static_cast<std::int64_t>(logits.size());
  return route(op, {.tokens = 1, .experts = experts, .chosen = op.chosen}, Array(logits, DType::F64));
}

// Logits (2, 1, 0, -1). e^2, e, 1, 1/e sum to 11.475; e^2 / (e^2 + e) = 0.73106; sigmoids of 2 and 1: 0.88080 and 0.73106.
TEST(HostExperts, WeightsOfTheFamilies) {
  const struct {
    const char* family;
    ops::Route op;
    std::vector<double> weights;
  } rows[] = {
      {"mixtral, qwen3_moe", {.score = Score::Softmax, .chosen = 2, .renormalised = true}, {0.73106, 0.26894}},
      {"gpt_oss, granitemoe", {.score = Score::SoftmaxOfChosen, .chosen = 2}, {0.73106, 0.26894}},
      {"olmoe", {.score = Score::Softmax, .chosen = 2}, {0.64391, 0.23688}},
      {"deepseek_v2", {.score = Score::Softmax, .chosen = 2, .scale = 16}, {16 * 0.643914, 16 * 0.236883}},
      {"deepseek_v3", {.score = Score::Sigmoid, .chosen = 2, .renormalised = true, .scale = 2.5}, {1.36612, 1.13388}},
      {"minimax_m2", {.score = Score::Sigmoid, .chosen = 2, .renormalised = true}, {0.54645, 0.45355}},
      {"llama4", {.score = Score::Sigmoid, .chosen = 1}, {0.88080}},
  };
  for (const auto& row : rows) {
    const Routed routed = routed_once(row.op, {2, 1, 0, -1});
    for (std::size_t j = 0; j < row.weights.size(); ++j) {
      EXPECT_NEAR(routed.weights.at(static_cast<std::int64_t>(j)), row.weights[j], 5e-6 * std::max(1.0, row.op.scale))
          << row.family;
      EXPECT_EQ(routed.experts.at(static_cast<std::int64_t>(j)), static_cast<double>(j)) << row.family;
    }
    EXPECT_EQ(routed.loads.values(), row.op.chosen == 2 ? (std::vector<double>{1, 1, 0, 0}) : (std::vector<double>{1, 0, 0, 0}))
        << row.family;
  }
}

// Large logits of either sign: no score overflows, and the smallest scores do not make weights that are no numbers.
TEST(HostExperts, LargeLogitsGiveNumbers) {
  for (const Score score : {Score::Softmax, Score::SoftmaxOfChosen, Score::Sigmoid})
    for (const double shift : {-800.0, 800.0}) {
      const Routed routed =
          routed_once({.score = score, .chosen = 2, .renormalised = true}, {shift + 1, shift, shift - 1, shift});
      for (const double w : routed.weights.values()) EXPECT_TRUE(std::isfinite(w) && w >= 0 && w <= 1) << w;
    }
}

TEST(HostExperts, OfEqualScoresTheFirstExpertIsChosen) {
  for (const Score score : {Score::Softmax, Score::SoftmaxOfChosen, Score::Sigmoid}) {
    const auto chosen = [&](std::int64_t k, const std::vector<double>& logits) {
      return routed_once({.score = score, .chosen = k}, logits).experts.values();
    };
    EXPECT_EQ(chosen(3, {1, 1, 1, 1, 1}), (std::vector<double>{0, 1, 2}));
    EXPECT_EQ(chosen(3, {0, 2, 1, 2, 1}), (std::vector<double>{1, 3, 2}));
    EXPECT_EQ(chosen(5, {0, 0, 0, 0, 1}), (std::vector<double>{4, 0, 1, 2, 3}));
  }
}

// Groups of two: (1, 1) and (1, 1) and (2, 0) are equally good by the sum of both, so the first two are chosen; by their best one the
// third and then the first.
TEST(HostExperts, OfEquallyGoodGroupsTheFirstIsChosen) {
  ops::Route op{.score = Score::SoftmaxOfChosen, .chosen = 3, .groups = 3, .chosen_groups = 2, .best_of_group = 2};
  EXPECT_EQ(routed_once(op, {1, 1, 1, 1, 2, 0}).experts.values(), (std::vector<double>{0, 1, 2}));
  op.best_of_group = 1;
  EXPECT_EQ(routed_once(op, {1, 1, 1, 1, 2, 0}).experts.values(), (std::vector<double>{4, 0, 1}));
}

// Scores 0.73, 0.5, 0.27, 0.12 of logits 1, 0, -1, -2. A bias of 0.3 lifts the third above the second, and it is weighted by its score:
// 0.26894 / (0.73106 + 0.26894). The counts of 5 each grow by one for each of the chosen.
TEST(HostExperts, ACorrectionBiasChangesTheChoiceAlone) {
  const ops::Route op{.score = Score::Sigmoid, .chosen = 2, .renormalised = true};
  const Routing sizes{.tokens = 1, .experts = 4, .chosen = 2};
  std::vector<Array> reads = {Array({1, 0, -1, -2}, DType::F64), Array({0, 0, 0.3, 0}, DType::F64),
                              Array({5, 5, 5, 5}, DType::F64)};
  std::vector<Array> writes = {Array(2, DType::F64), Array(2, DType::I64), Array(4, DType::F64), Array(4, DType::F64)};
  run_on(route_op(op, sizes), reads, writes);
  EXPECT_EQ(writes[1].values(), (std::vector<double>{0, 2}));
  EXPECT_NEAR(writes[0].at(0), 0.73106, 5e-6);
  EXPECT_NEAR(writes[0].at(1), 0.26894, 5e-6);
  EXPECT_EQ(writes[2].values(), (std::vector<double>{1, 0, 1, 0}));
  EXPECT_EQ(writes[3].values(), (std::vector<double>{6, 5, 6, 5}));
  reads.pop_back(), writes.pop_back();  // a recomputation does not count
  run_on(route_op(op, sizes, Phase::Recompute), reads, writes);
  EXPECT_EQ(writes[1].values(), (std::vector<double>{0, 2}));
}

// Two routers with means 2 and 4: experts below the mean gain, those above lose, one at the mean keeps its bias.
TEST(HostExperts, BiasesFollowTheCounts) {
  std::vector<Array> reads = {Array({1, 2, 3, 4, 8, 0}, DType::F64), Array({0, 0, 0, 1, 1, 1}, DType::F64)};
  std::vector<Array> writes = {Array(6, DType::F64), Array(6, DType::F64)};
  run_on({.op = ops::BalanceExperts{.speed = 0.25}, .phase = Phase::Update, .shapes = {{{2, 3}, DType::F64}}}, reads, writes);
  EXPECT_EQ(writes[0].values(), (std::vector<double>{0.25, 0, -0.25, 1, 0.75, 1.25}));
  EXPECT_EQ(writes[1].values(), (std::vector<double>(6, 0.0)));
}

// Tokens that like the first experts more: with the bias the fullest of eight experts comes from about twice the mean to within 5 % of it.
TEST(HostExperts, TheBiasBalancesTheLoads) {
  const Routing sizes{.tokens = 400, .experts = 8, .chosen = 2};
  Array logits = random_array(400 * 8, 3);
  for (std::int64_t i = 0; i < 400 * 8; ++i) logits.set(i, logits.at(i) - 0.2 * static_cast<double>(i % 8));
  std::vector<Array> state = {Array(std::vector<double>(8, 0.0), DType::F64), Array(std::vector<double>(8, 0.0), DType::F64)};
  std::vector<double> fullest;
  for (int step = 0; step < 200; ++step) {
    std::vector<Array> reads = {logits, state[0], state[1]};
    std::vector<Array> writes = {Array(800, DType::F64), Array(800, DType::I64), Array(8, DType::F64), Array(8, DType::F64)};
    run_on(route_op({.score = Score::Sigmoid, .chosen = 2, .renormalised = true}, sizes), reads, writes);
    const std::vector<double> loads = writes[2].values();
    fullest.push_back(*std::ranges::max_element(loads) / 100);
    reads = {writes[3], state[0]};
    run_on({.op = ops::BalanceExperts{.speed = 0.002}, .phase = Phase::Update, .shapes = {{{1, 8}, DType::F64}}}, reads, state);
  }
  EXPECT_GE(fullest.front(), 1.9);
  EXPECT_LT(fullest.back(), 1.05);
}

double score_of(Score score, const std::vector<double>& logits, std::size_t i) {
  if (score == Score::Sigmoid) return 1 / (1 + std::exp(-logits[i]));
  if (score == Score::SoftmaxOfChosen) return logits[i];
  double sum = 0;
  for (const double x : logits) sum += std::exp(x);
  return std::exp(logits[i]) / sum;
}

// All sets of `chosen_groups` groups, the best one by the sum of their scores; of its experts those whose rank by score is below k.
std::vector<double> chosen_by_brute_force(const ops::Route& op, const std::vector<double>& logits) {
  const std::size_t experts = logits.size(), each = experts / static_cast<std::size_t>(op.groups);
  std::vector<double> scores;
  for (std::size_t i = 0; i < experts; ++i) scores.push_back(score_of(op.score, logits, i));
  double best = -1e300;
  unsigned best_set = 0;
  for (unsigned set = 0; set < 1U << op.groups; ++set) {
    if (__builtin_popcount(set) != op.chosen_groups) continue;
    double sum = 0;
    for (std::size_t g = 0; g < static_cast<std::size_t>(op.groups); ++g) {
      if ((set >> g & 1U) == 0) continue;
      std::vector<double> of_group(scores.begin() + static_cast<std::ptrdiff_t>(g * each),
                                   scores.begin() + static_cast<std::ptrdiff_t>((g + 1) * each));
      std::sort(of_group.rbegin(), of_group.rend());
      const auto end = of_group.begin() + std::min<std::ptrdiff_t>(op.best_of_group, static_cast<std::ptrdiff_t>(each));
      sum += std::accumulate(of_group.begin(), end, 0.0);
    }
    if (sum > best) best = sum, best_set = set;
  }
  std::vector<double> chosen;
  for (std::size_t i = 0; i < experts; ++i)
    if ((best_set >> (i / each) & 1U) != 0) chosen.push_back(static_cast<double>(i));
  std::sort(chosen.begin(), chosen.end(),
            [&](double a, double b) { return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)]; });
  chosen.resize(static_cast<std::size_t>(op.chosen));
  return chosen;
}

TEST(HostExperts, GroupsAreChosenAsByBruteForce) {
  int limited = 0;
  for (const Score score : {Score::Softmax, Score::SoftmaxOfChosen, Score::Sigmoid})
    for (const std::int64_t groups : {1, 2, 4, 6})
      for (std::int64_t of = 1; of <= groups; ++of)
        for (const std::int64_t best : {1, 2, 3}) {
          const ops::Route op{.score = score,
                              .chosen = std::min<std::int64_t>(3, of * 12 / groups),
                              .groups = groups,
                              .chosen_groups = of,
                              .best_of_group = best};
          const Routing sizes{.tokens = 20, .experts = 12, .chosen = op.chosen};
          const Array logits = random_array(20 * 12, static_cast<std::uint64_t>(100 * groups + of));
          const Routed routed = route(op, sizes, logits);
          std::vector<double> loads(12);
          for (std::int64_t t = 0; t < 20; ++t) {
            std::vector<double> row;
            for (std::int64_t i = 0; i < 12; ++i) row.push_back(logits.at(12 * t + i));
            const std::vector<double> expected = chosen_by_brute_force(op, row);
            ops::Route free = op;
            free.groups = free.chosen_groups = 1;
            limited += chosen_by_brute_force(free, row) != expected;
            for (std::size_t j = 0; j < expected.size(); ++j) {
              ASSERT_EQ(routed.experts.at(t * op.chosen + static_cast<std::int64_t>(j)), expected[j])
                  << groups << " " << of << " " << best << ", token " << t;
              loads[static_cast<std::size_t>(expected[j])] += 1;
            }
          }
          EXPECT_EQ(routed.loads.values(), loads);
        }
  EXPECT_GT(limited, 500);  // the groups matter
}

TEST(HostExperts, RoutersThatCannotChooseAreRefused) {
  const auto refused = [](const ops::Route& op, const Routing& sizes) {
    EXPECT_THROW(route(op, sizes, random_array(sizes.tokens * sizes.experts, 1)), Error);
  };
  refused({.chosen = 0}, {.experts = 8, .chosen = 0});
  refused({.chosen = 9}, {.experts = 8, .chosen = 9});
  refused({.chosen = 2}, {.experts = 8, .chosen = 1});
  refused({.chosen = 2, .groups = 3}, {.experts = 8, .chosen = 2});
  refused({.chosen = 2, .groups = 4, .chosen_groups = 5}, {.experts = 8, .chosen = 2});
  refused({.chosen = 3, .groups = 4, .chosen_groups = 1}, {.experts = 8, .chosen = 3});
}

// ---- rows to the experts and back --------------------------------------------------------------------------------------------------

// Expert 0: tokens 0, 1, 2; expert 1: tokens 0, 3; expert 2: token 1; expert 3: tokens 2, 3. Ranks of two experts, five rows each.
TEST(HostExperts, RowsAreSortedByExpertThenByToken) {
  const Routing sizes{.tokens = 4, .experts = 4, .chosen = 2, .hidden = 1, .ranks = 2, .room = 5};
  const Array x({1, 2, 3, 4}, DType::F64), experts({1, 0, 0, 2, 3, 0, 1, 3}, DType::I64);
  Sent sent = dispatch({}, sizes, {x, experts});
  EXPECT_EQ(sent.rows.values(), (std::vector<double>{1, 2, 3, 1, 4, 2, 3, 4, 0, 0}));
  EXPECT_EQ(sent.places.values(), (std::vector<double>{3, 0, 1, 5, 6, 2, 4, 7}));
  EXPECT_EQ(sent.counts.values(), (std::vector<double>{3, 2, 1, 2}));

  sent = dispatch({.capacity = 1}, sizes, {x, experts});  // the first token of each expert
  EXPECT_EQ(sent.rows.values(), (std::vector<double>{1, 1, 0, 0, 0, 2, 3, 0, 0, 0}));
  EXPECT_EQ(sent.places.values(), (std::vector<double>{1, 0, -1, 5, 6, -1, -1, -1}));
  EXPECT_EQ(sent.counts.values(), (std::vector<double>{1, 1, 1, 1}));

  Routing narrow = sizes;
  narrow.room = 4;  // expert 1 of rank 0 goes short: its last token, 3, is dropped
  sent = dispatch({}, narrow, {x, experts});
  EXPECT_EQ(sent.rows.values(), (std::vector<double>{1, 2, 3, 1, 2, 3, 4, 0}));
  EXPECT_EQ(sent.places.values(), (std::vector<double>{3, 0, 1, 4, 5, 2, -1, 6}));
  EXPECT_EQ(sent.counts.values(), (std::vector<double>{3, 1, 1, 2}));

  // Dealt out: rank 0 has experts 0 and 2, rank 1 has 1 and 3.
  sent = dispatch({.dealt = true}, sizes, {x, experts});
  EXPECT_EQ(sent.rows.values(), (std::vector<double>{1, 2, 3, 2, 0, 1, 4, 3, 4, 0}));
  EXPECT_EQ(sent.places.values(), (std::vector<double>{5, 0, 1, 3, 7, 2, 6, 8}));
  EXPECT_EQ(sent.counts.values(), (std::vector<double>{3, 1, 2, 2}));
}

// The same by a loop over ranks, their experts and all tokens, whatever fits.
Sent sent_by_loops(const ops::Dispatch& op, const Routing& r, const std::vector<Array>& reads) {
  const Array &x = reads.front(), &experts = reads.back();
  Sent sent{
      .rows = Array(r.rows(), DType::F64), .places = Array(r.choices(), DType::I64), .counts = Array(r.experts, DType::I64)};
  for (std::int64_t i = 0; i < r.choices(); ++i) sent.places.set(i, -1);
  const std::int64_t each = r.experts / r.ranks;
  for (std::int64_t rank = 0; rank < r.ranks; ++rank)
    for (std::int64_t e = 0, used = 0; e < each; ++e) {
      std::int64_t count = 0;
      for (std::int64_t i = 0; i < r.choices(); ++i) {
        if (experts.at(i) != static_cast<double>(op.dealt ? e * r.ranks + rank : rank * each + e)) continue;
        if (used == r.room || (op.capacity > 0 && count == op.capacity)) continue;
        const std::int64_t place = rank * r.room + used;
        for (std::int64_t f = 0; f < r.hidden; ++f)
          sent.rows.set(place * r.hidden + f, x.at(i / r.chosen * r.hidden + f) * (op.scaled ? reads[1].at(i) : 1));
        sent.places.set(i, static_cast<double>(place));
        ++count, ++used;
      }
      sent.counts.set(rank * each + e, static_cast<double>(count));
    }
  return sent;
}

TEST(HostExperts, RowsAreThoseOfPlainLoops) {
  int dropped = 0;
  for (const bool scaled : {false, true})
    for (const bool dealt : {false, true})
      for (const std::int64_t ranks : {1, 2, 4, 8})
        for (const std::int64_t room : {3, 9, 48})
          for (const std::int64_t capacity : {0, 1, 4}) {
            const Routing sizes{.tokens = 16, .experts = 8, .chosen = 3, .hidden = 5, .ranks = ranks, .room = room};
            const ops::Dispatch op{.capacity = capacity, .scaled = scaled, .dealt = dealt};
            const std::vector<Array> reads = random_dispatch(op, sizes, 7);
            const Sent sent = dispatch(op, sizes, reads), expected = sent_by_loops(op, sizes, reads);
            EXPECT_EQ(sent.rows.values(), expected.rows.values());
            EXPECT_EQ(sent.places.values(), expected.places.values());
            EXPECT_EQ(sent.counts.values(), expected.counts.values());
            for (std::int64_t i = 0; i < sizes.choices(); ++i) dropped += sent.places.at(i) < 0;
          }
  EXPECT_GT(dropped, 500);
}

// With weights 1 and 10 of two choices: what comes back is 11 times the row where both had room, else its share, or 0.
TEST(HostExperts, DroppedChoicesAddNothing) {
  const Routing sizes{.tokens = 4, .experts = 4, .chosen = 2, .hidden = 1, .ranks = 2, .room = 5};
  const Array x({1, 2, 3, 4}, DType::F64), experts({1, 0, 0, 2, 3, 0, 1, 3}, DType::I64);
  const Array weights({1, 10, 1, 10, 1, 10, 1, 10}, DType::F64);
  const Sent sent = dispatch({.capacity = 1}, sizes, {x, experts});  // places 1 0, -1 5, 6 -1, -1 -1
  EXPECT_EQ(combine({}, sizes, {sent.rows, sent.places, weights}).values(), (std::vector<double>{11, 20, 3, 0}));
  EXPECT_EQ(combine({.plain = true}, sizes, {sent.rows, sent.places}).values(), (std::vector<double>{2, 2, 3, 0}));
}

TEST(HostExperts, ExpertsThatDoNotFillRanksAreRefused) {
  const Routing sizes{.tokens = 4, .experts = 8, .chosen = 1, .ranks = 3, .room = 4};
  EXPECT_THROW(dispatch({}, sizes, random_dispatch({}, sizes, 1)), Error);
}

// ---- a product for each expert ---------------------------------------------------------------------------------------------------------

// y[row][part, n] = bias + sum_k x[row][k] w[expert][n][k], or w[expert][k][n].
std::vector<double> products_by_loops(const Products& p, const std::vector<Array>& reads) {
  const Array &x = reads[0], &counts = reads[1];
  std::vector<double> y(static_cast<std::size_t>(p.rows() * p.parts * p.n));
  for (std::int64_t source = 0; source < p.sources; ++source) {
    std::int64_t row = source * p.room;
    for (std::int64_t e = 0; e < p.experts; ++e)
      for (std::int64_t r = 0; r < static_cast<std::int64_t>(counts.at(source * p.experts + e)); ++r, ++row)
        for (std::int64_t part = 0; part < p.parts; ++part)
          for (std::int64_t n = 0; n < p.n; ++n) {
            const Array& w = reads[static_cast<std::size_t>(2 + part)];
            double sum = p.biases ? reads[static_cast<std::size_t>(2 + p.parts + part)].at(e * p.n + n) : 0;
            for (std::int64_t k = 0; k < p.k; ++k)
              sum += x.at(row * p.k + k) * w.at(p.transposed ? (e * p.k + k) * p.n + n : (e * p.n + n) * p.k + k);
            y[static_cast<std::size_t>((row * p.parts + part) * p.n + n)] = sum;
          }
  }
  return y;
}

TEST(HostExperts, GroupedProductsAreThoseOfPlainLoops) {
  for (const Products& p : all_products()) {
    std::vector<Array> reads = random_products(p, 3);
    const std::vector<double> expected = products_by_loops(p, reads);
    for_each_unused(p, reads[1], [&](std::int64_t row) {  // nobody looks at them
      for (std::int64_t k = 0; k < p.k; ++k) reads[0].set(row * p.k + k, std::nan(""));
    });
    const Array y = outputs_of(p.compute(Phase::Forward), reads, {p.rows() * p.parts * p.n})[0];
    EXPECT_LT(relative_error(y.values(), expected), 1e-14) << p.name();
    int unused = 0;
    for_each_unused(p, reads[1], [&](std::int64_t row) {
      for (std::int64_t n = 0; n < p.parts * p.n; ++n) EXPECT_EQ(y.at(row * p.parts * p.n + n), 0) << p.name();
      ++unused;
    });
    EXPECT_GT(unused, 0);
  }
}

TEST(HostExperts, GroupedProductsThatCannotBeAreRefused) {
  const Products p{.parts = 2};
  EXPECT_THROW(outputs_of(Products{.parts = 2, .transposed = true}.compute(Phase::Forward), random_products(p, 1),
                          {p.rows() * p.parts * p.n}),
               Error);
  Compute in_eight_bits = p.compute(Phase::Forward);
  in_eight_bits.shapes[0].dtype = DType::F8;
  EXPECT_THROW(outputs_of(in_eight_bits, random_products(p, 1), {p.rows() * p.parts * p.n}), Error);
  in_eight_bits.shapes[0].dtype = DType::F4;
  EXPECT_THROW(outputs_of(in_eight_bits, random_products(p, 1), {p.rows() * p.parts * p.n}), Error);
}

}  // namespace
}  // namespace foreshard::host_experts_test
