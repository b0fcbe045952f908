#include "exec/host/host_kernel.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "core/base/error.h"

namespace foreshard::host {

namespace {

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::Forward: return "forward";
    case Phase::InputGrad: return "input gradient";
    case Phase::WeightGrad: return "weight gradient";
    case Phase::Backward: return "backward";
    case Phase::Recompute: return "recompute";
    case Phase::Update: return "update";
    case Phase::Other: return "other";
  }
  return "?";
}

}  // namespace

bool has_factors(const Compute& what, std::span<const Operand> writes) {
  return is<ops::MatMul>(what.op) && what.shapes.size() == 1 && what.shapes[0].dtype == DType::F8 && writes.size() > 1 &&
         writes.back().dtype == DType::U8;
}

const std::vector<std::int64_t>& Form::dims(std::size_t index, std::size_t count) const {
  if (index >= what.shapes.size())
    refuse(std::to_string(what.shapes.size()) + " shapes", "at least " + std::to_string(index + 1));
  const auto& found = what.shapes[index].dims;
  if (found.empty() || (count > 0 && found.size() != count))
    refuse("shape " + std::to_string(index) + " of " + std::to_string(found.size()) + " dimensions",
           count > 0 ? std::to_string(count) : "at least 1");
  for (const std::int64_t dim : found)
    if (dim < 1) refuse("dimension " + std::to_string(dim), "at least 1");
  return found;
}

void Form::expect(const std::vector<std::int64_t>& read_sizes, const std::vector<std::int64_t>& write_sizes) const {
  const auto check = [&](std::span<const Operand> operands, const std::vector<std::int64_t>& sizes, const std::string& side) {
    if (operands.size() != sizes.size()) refuse(std::to_string(operands.size()) + " " + side, std::to_string(sizes.size()));
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (operands[i].elements < sizes[i])
        refuse(side + "[" + std::to_string(i) + "] of " + std::to_string(operands[i].elements) + " elements",
               "at least " + std::to_string(sizes[i]));
  };
  check(reads, read_sizes, "reads");
  check(writes, write_sizes, "writes");
}

void read_tokens(const OpArguments& arguments, const TokenRows& tokens, std::int64_t* out) {
  FS_ASSERT(arguments.source);
  constexpr std::int64_t chunk = 256;
  std::array<std::int64_t, chunk> part;
  const std::int64_t positions = tokens.rows / arguments.samples;
  const RowPositions held = tokens.split.rows_of(arguments.cp_rank, positions);
  for (std::int64_t sample = 0; sample < arguments.samples; ++sample) {
    const std::int64_t global = arguments.first_sample + sample;
    if (tokens.label) part.fill(arguments.source->label(global, tokens.vocab));
    for_each_stretch(held, positions, chunk, [&](std::int64_t row, std::int64_t position, std::int64_t count) {
      const std::span<std::int64_t> read = std::span(part).first(static_cast<std::size_t>(count));
      if (!tokens.label) arguments.source->tokens(global, position + tokens.ahead, tokens.vocab, read);
      for (std::int64_t i = 0; i < count; ++i) out[(row + i) * arguments.samples + sample] = read[static_cast<std::size_t>(i)];
    });
  }
}

void expect_weights_phase(const Form& form) {
  if (!form.forward() && form.what.phase != Phase::WeightGrad)
    form.refuse("this phase", "forward, recompute or weight gradient");
}

void Form::refuse(const std::string& found, const std::string& expected) const {
  throw Error("plan", "compute " + word(what.op) + ", " + phase_name(what.phase), found, expected);
}

}  // namespace foreshard::host
