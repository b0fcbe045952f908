// What a model is trained on, by global sample number: the same sample is the same bits under every strategy.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace foreshard {

// Where samples come from.
struct SampleSource {
  std::string file = {};    // as it was named; none: random numbers made from the seed
  std::string format = {};  // of its tokens: "bytes", "u16", "u32"
  std::int64_t bytes = 0;
  std::string hash = {};  // of its bytes: text_hash
  bool random() const { return format.empty(); }
  // The same samples, whatever the file is called.
  bool alike(const SampleSource& other) const { return format == other.format && bytes == other.bytes && hash == other.hash; }
  bool operator==(const SampleSource&) const = default;
};

class Samples {
 public:
  virtual ~Samples() = default;
  virtual SampleSource source() const { return {}; }
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
