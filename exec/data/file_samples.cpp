#include "exec/data/file_samples.h"

#include <algorithm>
#include <set>

#include "core/base/count_text.h"
#include "core/base/error.h"
#include "core/base/text_hash.h"
#include "core/json/json.h"
#include "core/plan/ranks.h"
#include "exec/base/philox.h"
#include "exec/host/host_kernel.h"
#include "exec/rank/rank_place.h"

namespace foreshard {

namespace {

// Adds what an instruction reads, with the arguments that its kernel gets. Its rows are those of `arguments.samples`: with --parts fewer than
// the samples of a micro-batch.
void add_needs(const Compute& what, const OpArguments& arguments, SampleNeeds& needs) {
  const auto* tokens = std::get_if<ops::TokenEmbedding>(&what.op);
  if (tokens && !what.shapes.empty() && !what.shapes[0].dims.empty()) {
    const std::int64_t sequence = what.shapes[0].dims[0] / arguments.samples * tokens->split.ranks;
    if (needs.sequence != 0 && needs.sequence != sequence)
      throw Error("plan", word(what.op), counted(sequence, "token") + " of a sample",
                  std::to_string(needs.sequence) + ", as the other ranks read");
    needs.sequence = sequence, needs.vocab = tokens->vocab;
  }
  const auto* loss = std::get_if<ops::CrossEntropy>(&what.op);
  needs.features = needs.features || is<ops::Sample>(what.op);
  needs.labels = needs.labels || (loss && loss->target == ops::CrossEntropy::Target::Label);
}

}  // namespace

SampleNeeds sample_needs(const Plan& plan) {
  SampleNeeds needs;
  const Ranks ranks(plan);
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    const RankPlace place = place_of(plan, ranks, ranks.first({static_cast<std::int32_t>(r)}));
    std::set<std::int32_t> seen;  // segments
    for (const Action& action : plan.roles[r].actions) {
      if (!seen.insert(action.segment.value).second) continue;
      for (const Instruction& instruction : plan.segments[action.segment.index()].instructions)
        if (const auto* what = std::get_if<Compute>(&instruction.what); what && what->phase == Phase::Forward)
          add_needs(*what, arguments_of(plan, ranks, place, action, instruction), needs);
    }
  }
  return needs;
}

const std::vector<std::string>& token_formats() {
  static const std::vector<std::string> words = {"bytes", "u16", "u32"};
  return words;
}

FileSamples::FileSamples(const std::string& path, TokenFormat format, const SampleNeeds& needs, std::uint64_t seed)
    : width_(format == TokenFormat::Bytes ? 1
             : format == TokenFormat::U16 ? 2
                                          : 4),
      seed_(seed) {
  if (needs.sequence < 1 || needs.features || needs.labels)
    throw Error(path, "data", "a file of tokens", "a model that reads tokens; pictures and features are random ones");
  data_ = read_file(path);
  source_ = {.file = path,
             .format = token_formats()[static_cast<std::size_t>(format)],
             .bytes = static_cast<std::int64_t>(data_.size()),
             .hash = text_hash(data_)};
  if (data_.size() % static_cast<std::size_t>(width_) != 0)
    throw Error(path, "data", std::to_string(data_.size()) + " bytes", "tokens of " + std::to_string(width_) + " bytes each");
  size_ = static_cast<std::int64_t>(data_.size()) / width_;
  windows_ = size_ - needs.sequence;
  if (windows_ < 1)
    throw Error(path, "data", counted(size_, "token"),
                "at least " + std::to_string(needs.sequence + 1) + ": a sample of the model and its last target");
  for (std::int64_t i = 0; i < size_; ++i)
    if (token(i) >= needs.vocab)
      throw Error(path, "token " + std::to_string(i), std::to_string(token(i)),
                  "a number below the vocabulary of " + std::to_string(needs.vocab));
}

std::int64_t FileSamples::token(std::int64_t at) const {
  std::int64_t value = 0;
  for (int byte = width_ - 1; byte >= 0; --byte)
    value = value << 8 | static_cast<unsigned char>(data_[static_cast<std::size_t>(at * width_ + byte)]);
  return value;
}

std::int64_t FileSamples::begin(std::int64_t sample) const {
  const PhiloxBlock words = philox(seed_, mix_keys(name_key("window"), static_cast<std::uint64_t>(sample)), 0);
  return static_cast<std::int64_t>((std::uint64_t{words[0]} << 32 | words[1]) % static_cast<std::uint64_t>(windows_));
}

void FileSamples::tokens(std::int64_t sample, std::int64_t position, std::int64_t, std::span<std::int64_t> out) const {
  const std::int64_t first = begin(sample) + position;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = token(std::min(first + static_cast<std::int64_t>(i), size_ - 1));
}

// The label of BERT's next-sentence head. A plain text does not contain it, so it is random.
std::int64_t FileSamples::label(std::int64_t sample, std::int64_t classes) const {
  return RandomSamples(seed_).label(sample, classes);
}

void FileSamples::features(std::int64_t, std::int64_t, std::span<double>) const { FS_ASSERT(!"checked when the file is read"); }

}  // namespace foreshard
