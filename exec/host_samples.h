// What a model is trained on, by global sample number: the same sample is the same bits under every strategy.
#pragma once

#include <cstdint>
#include <span>

namespace foreshard {

class Samples {
 public:
  virtual ~Samples() = default;
  // Tokens of `sample` from `position` on, each in [0, vocab). The target of position i is the token at i + 1.
  virtual void tokens(std::int64_t sample, std::int64_t position, std::int64_t vocab, std::span<std::int64_t> out) const = 0;
  // Class of the whole sample, in [0, classes).
  virtual std::int64_t label(std::int64_t sample, std::int64_t classes) const = 0;
  // Features of the sample (a picture) from element `first` on, row-major.
  virtual void features(std::int64_t sample, std::int64_t first, std::span<double> out) const = 0;
};

// Made by the counter-based generator: no files. Uniform tokens and labels, normal features of variance 1.
class RandomSamples : public Samples {
 public:
  explicit RandomSamples(std::uint64_t seed) : seed_(seed) {}
  void tokens(std::int64_t sample, std::int64_t position, std::int64_t vocab, std::span<std::int64_t> out) const override;
  std::int64_t label(std::int64_t sample, std::int64_t classes) const override;
  void features(std::int64_t sample, std::int64_t first, std::span<double> out) const override;

 private:
  std::uint64_t seed_;
};

}  // namespace foreshard
