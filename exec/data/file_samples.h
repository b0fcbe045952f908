// Training on a file: a text, whose bytes are the tokens, or tokens stored as 16- or 32-bit little-endian numbers. A sample is a
// window of the file at a place that depends on the seed and the global number of the sample only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "exec/arithmetic/host_samples.h"

namespace foreshard {

enum class TokenFormat : std::uint8_t { Bytes, U16, U32 };
const std::vector<std::string>& token_formats();  // their words, in this order

// What the model of a plan reads.
struct SampleNeeds {
  std::int64_t sequence = 0, vocab = 0;  // tokens of a sample, the last target apart; token values are below vocab
  bool labels = false, features = false;
};
// Throws Error for a plan whose batch does not divide.
SampleNeeds sample_needs(const Plan& plan);

class FileSamples : public Samples {
 public:
  // Throws Error: a file that cannot be read, is too short for one sample, holds a token that is not below the model's
  // vocabulary; a model that needs more than tokens.
  FileSamples(const std::string& path, TokenFormat format, const SampleNeeds& needs, std::uint64_t seed);

  SampleSource source() const override { return source_; }
  void tokens(std::int64_t sample, std::int64_t position, std::int64_t vocab, std::span<std::int64_t> out) const override;
  std::int64_t label(std::int64_t sample, std::int64_t classes) const override;
  void features(std::int64_t sample, std::int64_t first, std::span<double> out) const override;

  std::int64_t size() const { return size_; }  // tokens
  // Where the window of a sample begins.
  std::int64_t begin(std::int64_t sample) const;

 private:
  std::int64_t token(std::int64_t at) const;

  std::string data_;
  int width_ = 1;  // bytes of a token
  std::int64_t size_ = 0, windows_ = 0;
  std::uint64_t seed_ = 0;
  SampleSource source_;
};

}  // namespace foreshard
