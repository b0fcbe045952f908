// The samples that a model is trained on, by their global number. A sample has the same bits under every strategy.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace foreshard {

// Where samples come from.
struct SampleSource {
  std::string file = {};    // name of the file as the user gave it; "": random numbers made from the seed
  std::string format = {};  // format of its tokens: "bytes", "u16" or "u32"; "": random numbers
  std::int64_t bytes = 0;   // size of the file
  std::string hash = {};    // text_hash of its contents
  bool random() const { return format.empty(); }
  // Whether both files have the same contents, whatever their names.
  bool alike(const SampleSource& other) const { return format == other.format && bytes == other.bytes && hash == other.hash; }
  bool operator==(const SampleSource&) const = default;
};

class Samples {
 public:
  virtual ~Samples() = default;
  virtual SampleSource source() const { return {}; }
  // Tokens of `sample` from `position` on, each in [0, vocab). The target of position i is the token at i + 1.
  virtual void tokens(std::int64_t sample, std::int64_t position, std::int64_t vocab, std::span<std::int64_t> out) const = 0;
  // The class of the sample, in [0, classes).
  virtual std::int64_t label(std::int64_t sample, std::int64_t classes) const = 0;
  // Features of the sample (for example an image) from element `first` on, row-major.
  virtual void features(std::int64_t sample, std::int64_t first, std::span<double> out) const = 0;
};

// Random samples from the counter-based generator (exec/base/philox.h): uniform tokens and labels, normal features of mean 0 and variance
// 1.
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
