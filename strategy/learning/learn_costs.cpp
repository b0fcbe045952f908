#include "strategy/learning/learn_costs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "strategy/learning/cholesky.h"

namespace foreshard {

namespace {

constexpr double kLeastShare = 1e-4;  // a part with a smaller share of an iteration is ignored: the run does not show its cost
constexpr double kPriorWidth = 1.5;   // standard deviation of the logarithm of a scale: a factor of 4.5
constexpr double kJitter = 1e-10;     // added to the prior variances, so that the matrix is positive definite with equal shapes
// The scales are found this many times, each time at the likeliest factors for the scales before.
constexpr int kRounds = 2;
constexpr int kMostSteps = 20;       // of the Gauss-Newton method
constexpr double kSettled = 1e-4;    // it ends when a step improves the objective by less than this
constexpr double kLeastTime = 0.05;  // lower limit of modelled time / predicted time during the search

using Point = std::array<double, 5>;  // logarithms of the scales

Point point_of(const LearnedScales& s) {
  return {std::log(s.machine), std::log(s.compute), std::log(s.communication), std::log(s.reach), std::log(s.noise)};
}
LearnedScales scales_at(const Point& p) {
  return {.machine = std::exp(p[0]),
          .compute = std::exp(p[1]),
          .communication = std::exp(p[2]),
          .reach = std::exp(p[3]),
          .noise = std::exp(p[4])};
}
// Limits of the logarithms of the scales. Machines are not known to less than a thousandth (e^-7); scales above 0.5 (e^-0.69) would be more
// than corrections.
constexpr Point kLow = {-7, -7, -7, -3, -6.2}, kHigh = {-0.69, -0.69, -0.69, 4, 1};

// The runs linearized about given factors, y = W theta + noise, where theta are the ln(factor), y the modified ln(ratio).
struct Equations {
  SquareMatrix weights;        // W^T W
  std::vector<double> values;  // W^T y
  double squares = 0;          // y^T y
  int runs = 0;
};

struct Posterior {
  std::vector<double> pull = {};  // [shape]: C^-1 mean, with the prior covariance C
  std::vector<double> mean = {};  // [shape]: ln(factor)
  SquareMatrix doubt;
};

class Learner {
 public:
  explicit Learner(const std::vector<LearnedRun>& runs) : runs_(runs) {
    for (const LearnedRun& run : runs)
      for (const auto& [shape, share] : run.shares)
        if (share > kLeastShare) index_.emplace(shape, index_.size());
    int next = 0;
    for (auto& [shape, index] : index_) index = static_cast<std::size_t>(next++), shapes_.push_back(shape);
    for (const LearnedRun& run : runs) {
      std::vector<std::pair<std::size_t, double>>& shares = shares_.emplace_back();
      for (const auto& [shape, share] : run.shares)
        if (share > kLeastShare) shares.emplace_back(index_.at(shape), share);
    }
    apart_ = SquareMatrix(shapes_.size());
    for (std::size_t i = 0; i < shapes_.size(); ++i)
      for (std::size_t j = 0; j < shapes_.size(); ++j) apart_.at(i, j) = distance(shapes_[i], shapes_[j]);
  }

  LearnedCosts learn() const {
    LearnedCosts learned;
    if (shapes_.empty()) return learned;
    Posterior posterior = likeliest_factors(learned.scales);
    for (int round = 0; round < kRounds; ++round) {
      learned.scales = likeliest_scales(linearized(posterior.mean));
      posterior = likeliest_factors(learned.scales);
    }
    learned.runs = static_cast<int>(runs_.size());
    for (std::size_t i = 0; i < shapes_.size(); ++i)
      learned.shapes.push_back({.shape = shapes_[i], .runs = runs_with(i), .pull = posterior.pull[i]});
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      std::vector<double>& row = learned.doubt.emplace_back();
      for (std::size_t j = 0; j <= i; ++j) row.push_back(posterior.doubt.at(i, j));
    }
    return learned;
  }

 private:
  double time_of(std::size_t run, const std::vector<double>& theta) const {
    double time = 1;
    for (const auto& [i, share] : shares_[run]) time += share * (std::exp(theta[i]) - 1);
    return std::max(time, kLeastTime);
  }

  // -ln(likelihood * prior of the factors), up to a constant, where theta = C pull.
  double objective(const LearnedScales& scales, const std::vector<double>& theta, const std::vector<double>& pull) const {
    double sum = 0;
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      const double off = std::log(runs_[run].ratio / time_of(run, theta));
      sum += 0.5 * off * off / (scales.noise * scales.noise);
    }
    for (std::size_t i = 0; i < theta.size(); ++i) sum += 0.5 * theta[i] * pull[i];
    return sum;
  }

  // The factors with the least objective, by Gauss-Newton steps that are halved until the objective decreases.
  Posterior likeliest_factors(const LearnedScales& scales) const {
    const SquareMatrix c = prior(scales);
    const std::size_t n = shapes_.size();
    std::vector<double> pull(n), theta(n);
    double here = objective(scales, theta, pull);
    for (int step = 0; step < kMostSteps; ++step) {
      const Posterior next = solve(linearized(theta), scales, c);
      double there = here, part = 1;
      for (; part > 1e-3; part /= 2) {
        std::vector<double> p(n), t(n);
        for (std::size_t i = 0; i < n; ++i)
          p[i] = pull[i] + part * (next.pull[i] - pull[i]), t[i] = theta[i] + part * (next.mean[i] - theta[i]);
        there = objective(scales, t, p);
        if (there >= here) continue;
        pull = std::move(p), theta = std::move(t);
        break;
      }
      if (here - there < kSettled) break;
      here = there;
    }
    Posterior last = solve(linearized(theta), scales, c);
    last.pull = std::move(pull), last.mean = std::move(theta);
    return last;
  }

  // Linearizes ln(1 + sum of share * (factor - 1)) about theta. Its slopes are the shares of the parts in an iteration with these factors.
  Equations linearized(const std::vector<double>& theta) const {
    Equations e{.weights = SquareMatrix(shapes_.size()), .values = std::vector<double>(shapes_.size())};
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      const double time = time_of(run, theta);
      double value = std::log(runs_[run].ratio / time);
      std::vector<std::pair<std::size_t, double>> slopes;
      for (const auto& [i, share] : shares_[run]) {
        slopes.emplace_back(i, share * std::exp(theta[i]) / time);
        value += slopes.back().second * theta[i];
      }
      for (const auto& [i, a] : slopes) {
        e.values[i] += a * value;
        for (const auto& [j, b] : slopes) e.weights.at(i, j) += a * b;
      }
      e.squares += value * value, ++e.runs;
    }
    return e;
  }

  SquareMatrix prior(const LearnedScales& scales) const {
    SquareMatrix c(shapes_.size());
    for (std::size_t i = 0; i < c.n; ++i)
      for (std::size_t j = 0; j <= i; ++j) {
        double value = scales.machine * scales.machine;
        if (shapes_[i].part == shapes_[j].part) {
          const double own = is_communication(shapes_[i].part) ? scales.communication : scales.compute;
          value += own * own * std::exp(-apart_.at(i, j) / scales.reach);
        }
        c.at(i, j) = c.at(j, i) = value + (i == j ? kJitter : 0);
      }
    return c;
  }

  // With C = L L^T, all systems to solve have the matrix M = 1 + L^T W^T W L / noise^2, which is well conditioned.
  struct Solved {
    SquareMatrix root, middle;  // L, and the Cholesky factor of M
  };
  std::optional<Solved> solved(const Equations& e, const LearnedScales& scales) const {
    auto root = cholesky(prior(scales));
    if (!root) return {};
    SquareMatrix m = product(transposed(*root), product(e.weights, *root));
    for (double& value : m.values) value /= scales.noise * scales.noise;
    for (std::size_t i = 0; i < m.n; ++i) m.at(i, i) += 1;
    auto middle = cholesky(std::move(m));
    if (!middle) return {};
    return Solved{std::move(*root), std::move(*middle)};
  }

  // -ln(evidence * priors of the scales), up to a constant.
  double cost(const Equations& e, const Point& at) const {
    double sum = 0;
    const Point first = point_of({});
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (at[i] < kLow[i] || at[i] > kHigh[i]) return std::numeric_limits<double>::infinity();
      sum += 0.5 * (at[i] - first[i]) * (at[i] - first[i]) / (kPriorWidth * kPriorWidth);
    }
    const LearnedScales scales = scales_at(at);
    const auto parts = solved(e, scales);
    if (!parts) return std::numeric_limits<double>::infinity();
    const double noise = scales.noise * scales.noise;
    std::vector<double> v = solve_lower(parts->middle, product(transposed(parts->root), e.values));
    double explained = 0;
    for (const double each : v) explained += each * each;
    sum += 0.5 * (e.squares / noise - explained / (noise * noise)) + e.runs * at[4];
    for (std::size_t i = 0; i < parts->middle.n; ++i) sum += std::log(parts->middle.at(i, i));
    return sum;
  }

  // Minimizes cost() over the logarithms of the five scales by the simplex method of Nelder and Mead (1965).
  LearnedScales likeliest_scales(const Equations& e) const {
    constexpr int kMost = 160;
    constexpr double kFirst = 0.7, kEnough = 1e-3;
    std::vector<std::pair<double, Point>> simplex;
    const auto add = [&](const Point& at) { simplex.emplace_back(cost(e, at), at); };
    add(point_of({}));
    for (std::size_t i = 0; i < std::tuple_size_v<Point>; ++i) {
      Point at = point_of({});
      at[i] += kFirst;
      add(at);
    }
    const auto beyond = [](const Point& center, const Point& worst, double by) {
      Point at = center;
      for (std::size_t i = 0; i < at.size(); ++i) at[i] += by * (center[i] - worst[i]);
      return at;
    };
    for (int step = 0; step < kMost; ++step) {
      std::sort(simplex.begin(), simplex.end());
      auto& worst = simplex.back();
      if (worst.first - simplex.front().first < kEnough) break;
      Point center = {};
      for (std::size_t k = 0; k + 1 < simplex.size(); ++k)
        for (std::size_t i = 0; i < center.size(); ++i)
          center[i] += simplex[k].second[i] / static_cast<double>(simplex.size() - 1);
      const auto tried = [&](double by) {
        const Point at = beyond(center, worst.second, by);
        return std::pair(cost(e, at), at);
      };
      const auto reflected = tried(1);
      if (reflected < simplex.front()) {
        worst = std::min(reflected, tried(2));
      } else if (reflected.first < simplex[simplex.size() - 2].first) {
        worst = reflected;
      } else if (const auto nearer = tried(reflected.first < worst.first ? 0.5 : -0.5);
                 nearer.first < std::min(reflected.first, worst.first)) {
        worst = nearer;
      } else {
        for (std::size_t k = 1; k < simplex.size(); ++k) {
          for (std::size_t i = 0; i < center.size(); ++i)
            simplex[k].second[i] = (simplex[k].second[i] + simplex.front().second[i]) / 2;
          simplex[k].first = cost(e, simplex[k].second);
        }
      }
    }
    return scales_at(std::min_element(simplex.begin(), simplex.end())->second);
  }

  // The posterior of the linearized runs. With A = W^T W:
  //   doubt = W^T (W C W^T + noise^2)^-1 W = (A - A L M^-1 L^T A / noise^2) / noise^2
  //   pull  = W^T (W C W^T + noise^2)^-1 y, in the same way
  Posterior solve(const Equations& e, const LearnedScales& scales, const SquareMatrix& c) const {
    const auto parts = solved(e, scales);
    FS_ASSERT(parts);
    const double noise = scales.noise * scales.noise;
    const std::size_t n = shapes_.size();
    const SquareMatrix across = product(transposed(parts->root), e.weights);  // L^T A
    Posterior posterior{.pull = std::vector<double>(n), .mean = {}, .doubt = SquareMatrix(n)};
    std::vector<double> value = solve_lower(parts->middle, product(transposed(parts->root), e.values));
    SquareMatrix columns(n);  // row j: column j of K^-1 L^T A, where M = K K^T
    for (std::size_t j = 0; j < n; ++j) {
      std::vector<double> column(n);
      for (std::size_t i = 0; i < n; ++i) column[i] = across.at(i, j);
      column = solve_lower(parts->middle, std::move(column));
      for (std::size_t i = 0; i < n; ++i) columns.at(j, i) = column[i];
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double* column = &columns.values[i * n];
      posterior.pull[i] = (e.values[i] - dot(column, value.data(), n) / noise) / noise;
      for (std::size_t j = 0; j <= i; ++j) {
        const double doubt = (e.weights.at(i, j) - dot(column, &columns.values[j * n], n) / noise) / noise;
        posterior.doubt.at(i, j) = posterior.doubt.at(j, i) = doubt;
      }
    }
    posterior.mean = product(c, posterior.pull);
    return posterior;
  }

  int runs_with(std::size_t shape) const {
    return static_cast<int>(std::count_if(runs_.begin(), runs_.end(), [&](const LearnedRun& run) {
      return std::any_of(run.shares.begin(), run.shares.end(),
                         [&](const PartShare& part) { return part.second > kLeastShare && part.first == shapes_[shape]; });
    }));
  }

  const std::vector<LearnedRun>& runs_;
  std::map<PartShape, std::size_t> index_ = {};
  std::vector<std::vector<std::pair<std::size_t, double>>> shares_ = {};  // [run]: index of the shape, share
  std::vector<PartShape> shapes_ = {};
  SquareMatrix apart_;
};

}  // namespace

LearnedCosts learn_costs(const std::vector<LearnedRun>& runs) { return Learner(runs).learn(); }

}  // namespace foreshard
