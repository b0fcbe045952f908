// Training on a file: a text whose bytes are the tokens, or tokens stored as 16- or 32-bit little-endian numbers. A sample is a window of
// the file. Where it begins is random, and depends only on the seed and the global number of the sample.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "exec/arithmetic/host_samples.h"

namespace foreshard {

enum class TokenFormat : std::uint8_t { Bytes, U16, U32 };
const std::vector<std::string>& token_formats();  // their names: "bytes", "u16", "u32"

// What the model of a plan reads from a sample.
struct SampleNeeds {
  // sequence: input tokens of a sample, 0 if it has none; one more token follows them, the target of the last. vocab: tokens are in
  // [0, vocab).
  std::int64_t sequence = 0, vocab = 0;
  bool labels = false, features = false;  // it reads a class per sample; it reads features (images)
  bool operator==(const SampleNeeds&) const = default;
};
// The same for every split of the same model. Throws Error for a plan whose samples do not divide by replicas times micro-batches, and for one
// whose ranks read samples of different lengths.
SampleNeeds sample_needs(const Plan& plan);

class FileSamples : public Samples {
 public:
  // Reads the whole file. Throws Error for a file that cannot be read, is too short for one sample, or contains a token outside the
  // vocabulary, and for a model that reads labels or features.
  FileSamples(const std::string& path, TokenFormat format, const SampleNeeds& needs, std::uint64_t seed);

  SampleSource source() const override { return source_; }
  void tokens(std::int64_t sample, std::int64_t position, std::int64_t vocab, std::span<std::int64_t> out) const override;
  std::int64_t label(std::int64_t sample, std::int64_t classes) const override;
  void features(std::int64_t sample, std::int64_t first, std::span<double> out) const override;

  std::int64_t size() const { return size_; }  // number of tokens in the file
  // The token of the file at which the window of a sample begins.
  std::int64_t begin(std::int64_t sample) const;

 private:
  std::int64_t token(std::int64_t at) const;

  std::string data_;
  int width_ = 1;                        // bytes of a token
  std::int64_t size_ = 0, windows_ = 0;  // tokens of the file; positions at which a window can begin
  std::uint64_t seed_ = 0;
  SampleSource source_;
};

}  // namespace foreshard
