#include "exec/data/training_point.h"

#include <charconv>
#include <sstream>

#include "core/base/error.h"

namespace foreshard {

namespace {

using Words = std::map<std::string, std::string>;

constexpr const char* kRandom = "random";  // data_format of samples that are not from a file

std::string word(const Words& words, const std::string& key) {
  const auto found = words.find(key);
  return found == words.end() ? "" : found->second;
}

template <class Number>
Number number(const Words& words, const std::string& key, const std::string& file) {
  const std::string text = word(words, key);
  Number value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || text.starts_with('-'))
    throw Error(file, "__metadata__." + key, "\"" + text + "\"", "a whole number");
  return value;
}

// "exponent good skipped". The other members belong to the last step and are not needed to resume.
std::string text_of(const LossScaleState& state) {
  std::string text;
  for (const float part : {state.exponent, state.good, state.skipped}) {
    if (!text.empty()) text += ' ';
    text += std::to_string(static_cast<std::int64_t>(part));
  }
  return text;
}

// A file without it was written by a run without a dynamic loss scale.
LossScaleState loss_scale_of(const Words& words, const std::string& file) {
  if (!words.contains("loss_scale")) return {};
  LossScaleState state;
  std::istringstream in(word(words, "loss_scale"));
  if (!(in >> state.exponent >> state.good >> state.skipped) || !(in >> std::ws).eof())
    throw Error(file, "__metadata__.loss_scale", "\"" + word(words, "loss_scale") + "\"", "three whole numbers");
  return state;
}

std::optional<SampleSource> source_of(const Words& words, const std::string& file) {
  const std::string format = word(words, "data_format");
  if (format.empty()) return {};
  if (format == kRandom) return SampleSource{};
  return SampleSource{.file = word(words, "data"),
                      .format = format,
                      .bytes = number<std::int64_t>(words, "data_bytes", file),
                      .hash = word(words, "data_hash")};
}

}  // namespace

std::map<std::string, std::string> words_of(const TrainingPoint& point) {
  Words words = {{"step", std::to_string(point.step)},
                 {"samples", std::to_string(point.samples)},
                 {"seed", std::to_string(point.seed)},
                 {"loss_scale", text_of(point.loss_scale)}};
  if (!point.source) return words;
  words["data_format"] = point.source->random() ? kRandom : point.source->format;
  if (point.source->random()) return words;
  words["data"] = point.source->file;
  words["data_bytes"] = std::to_string(point.source->bytes);
  words["data_hash"] = point.source->hash;
  return words;
}

TrainingPoint point_of(const std::map<std::string, std::string>& words, const std::string& file) {
  return {.step = number<int>(words, "step", file),
          .samples = number<std::int64_t>(words, "samples", file),
          .seed = number<std::uint64_t>(words, "seed", file),
          .loss_scale = loss_scale_of(words, file),
          .source = source_of(words, file)};
}

}  // namespace foreshard
