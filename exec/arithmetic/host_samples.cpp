#include "exec/arithmetic/host_samples.h"

#include <cmath>

#include "exec/base/philox.h"

namespace foreshard {

namespace {

std::uint64_t stream_of(std::uint64_t what, std::int64_t sample) { return mix_keys(what, static_cast<std::uint64_t>(sample)); }

// A random number in [0, limit), uniform up to a bias of at most limit / 2^64.
std::int64_t below(const PhiloxBlock& words, std::int64_t limit) {
  const std::uint64_t word = std::uint64_t{words[0]} << 32 | words[1];
  return static_cast<std::int64_t>(word % static_cast<std::uint64_t>(limit));
}

}  // namespace

void RandomSamples::tokens(std::int64_t sample, std::int64_t position, std::int64_t vocab, std::span<std::int64_t> out) const {
  const std::uint64_t stream = stream_of(name_key("tokens"), sample);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = below(philox(seed_, stream, static_cast<std::uint64_t>(position) + i), vocab);
}

std::int64_t RandomSamples::label(std::int64_t sample, std::int64_t classes) const {
  return below(philox(seed_, stream_of(name_key("label"), sample), 0), classes);
}

void RandomSamples::features(std::int64_t sample, std::int64_t first, std::span<double> out) const {
  const std::uint64_t stream = stream_of(name_key("features"), sample);
  standard_normals(seed_, stream, static_cast<std::uint64_t>(first), out);
}

}  // namespace foreshard
