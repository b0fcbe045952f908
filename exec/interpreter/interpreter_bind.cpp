// Prepares the instructions of a rank: their operands in the arenas, tasks of the device and the communicator, and events.
#include <algorithm>
#include <map>
#include <thread>

#include "core/base/error.h"
#include "core/plan/root_places.h"
#include "exec/arithmetic/loss_scale_state.h"
#include "exec/interpreter/interpreter.h"

namespace foreshard {

static Operand first_of(Operand operand, std::int64_t elements) {
  operand.elements = elements;
  return operand;
}

// Of the same stage, in a run.
static int updates_before(const Role& role, const Action& update) {
  int count = 0;
  for (const Action& action : role.actions) {
    if (&action == &update) break;
    for (const Does& does : action.does) count += does.work == Work::Update && does.stage == update.does.front().stage ? 1 : 0;
  }
  return count;
}

void Interpreter::bind() {
  bound_.reserve(steps_.size());
  for (std::size_t s = 0; s < steps_.size(); ++s) bound_.push_back(bind(static_cast<int>(s)));
  bind_events();
  prepare();
}

// Finds the rows of consecutive computes (TaskRow), and lets the device fuse their members.
void Interpreter::prepare() {
  std::vector<TaskRow> rows;
  std::vector<std::vector<std::size_t>> steps;  // [row]
  std::map<StreamId, std::size_t> open;         // stream -> the row that the next step may continue
  const auto bytes = [&](const std::vector<int>& blocks) {
    std::vector<std::span<const std::byte>> all;
    for (const int block : blocks)
      all.emplace_back(memory_.address(block), static_cast<std::size_t>(memory_.buffer(block).bytes.value));
    return all;
  };
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Bound& bound = bound_[s];
    const StreamId stream = steps_[s].stream;
    const auto row = open.find(stream);
    if (row != open.end() &&
        (!bound.computes || !bound.waits.empty() || steps_[steps[row->second].back()].action != steps_[s].action))
      open.erase(row);
    if (!bound.computes) continue;
    const auto [at, fresh] = open.try_emplace(stream, rows.size());
    if (fresh) rows.push_back({.stream = stream}), steps.emplace_back();
    rows[at->second].members.push_back({bound.task.get(), bytes(bound.acquires), bytes(bound.releases)});
    steps[at->second].push_back(s);
    if (bound.record >= 0) open.erase(at);
  }
  for (const JoinedTasks& joined : device_.prepare(rows))
    for (std::size_t i = 0; i < joined.count; ++i)
      bound_[steps[joined.row][joined.first + i]].joined = i == 0 ? static_cast<int>(joined.count) : 0;
}

// One event of the device for every step that another stream waits for.
void Interpreter::bind_events() {
  const auto event = [&](int step) {
    int& record = bound_[static_cast<std::size_t>(step)].record;
    if (record < 0) record = events_++;
    return record;
  };
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    for (const int step : steps_[s].after) bound_[s].waits.push_back(event(step));
    for (const int step : steps_[s].after_previous) bound_[s].waits.push_back(event(step));
  }
}

// The blocks of the list that this rank has: some blocks of a gather or reduce exist only on the root.
std::vector<int> Interpreter::blocks(const std::vector<Block>& list, const Action& action, const Instruction& of) const {
  std::vector<int> all;
  for (const Block& block : list)
    if (!is_root_only_block(of, block) || is_root(plan_, ranks_, place_.rank, std::get<Collective>(of.what).group))
      all.push_back(memory_.block(block.buffer, value_of(block.slot, action)));
  return all;
}

Interpreter::Bound Interpreter::bind(int index) {
  const RankStep& step = steps_[static_cast<std::size_t>(index)];
  const Action& action = role_.actions[static_cast<std::size_t>(step.action)];
  const Instruction& instruction = instruction_of(plan_, role_, step);
  const std::string where = name_of(plan_, ranks_, place_.rank, step.action, step.instruction);
  Bound bound;
  if (std::holds_alternative<Compute>(instruction.what)) {
    bound = bind_compute(index, action, instruction, where);
    bound.computes = true;
  } else if (std::holds_alternative<Collective>(instruction.what)) {
    bound.task = bind_collective(step, action, instruction, where);
    bound.communicates = true;
  } else if (std::holds_alternative<Exchange>(instruction.what)) {
    bound.task = bind_exchange(step, action, instruction, where);
    bound.communicates = true;
  } else if (std::holds_alternative<Copy>(instruction.what)) {
    bound.task = bind_copy(action, instruction, where);
  } else if (const auto* host = std::get_if<HostCompute>(&instruction.what)) {
    Instruction same = instruction;
    same.what = Compute{.op = host->op,
                        .phase = Phase::Update,
                        .shapes = host->shapes,
                        .traffic = host->traffic,
                        .loss_scale = host->loss_scale};
    bound = bind_compute(index, action, same, where, true);
  }
  bound.acquires = blocks(instruction.acquires, action, instruction);
  bound.releases = blocks(instruction.releases, action, instruction);
  return bound;
}

Interpreter::Bound Interpreter::bind_compute(int index, const Action& action, const Instruction& instruction,
                                             const std::string& where, bool on_host) {
  const auto& what = std::get<Compute>(instruction.what);
  std::vector<Operand> reads, writes;
  for (const Use& use : instruction.reads) reads.push_back(memory_.operand(use, value_of(use.slot, action), where));
  for (const Use& use : instruction.writes) writes.push_back(memory_.operand(use, value_of(use.slot, action), where));
  OpArguments arguments = arguments_of(plan_, ranks_, place_, action, instruction);
  arguments.seed = options_.seed;
  arguments.first_sample += options_.first_sample;
  arguments.updates_of_run = plan_.updates;
  arguments.step += std::int64_t{options_.first_step} * plan_.updates;
  if (!action.does.empty() && action.does.front().work == Work::Update) arguments.step += updates_before(role_, action);
  arguments.source = options_.samples;
  arguments.optimizer = options_.optimizer;
  if (on_host)  // the ranks of a machine update at the same time, so they share its cores
    arguments.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / ranks_.count());
  if (const auto* sgd = std::get_if<ops::Sgd>(&what.op); sgd && sgd->momentum > 0) arguments.optimizer.momentum = sgd->momentum;
  Bound bound;
  try {
    bound.task = on_host ? device_.host_compute(instruction.stream, what, reads, writes, arguments)
                         : device_.compute(instruction.stream, what, reads, writes, arguments);
  } catch (const Error& problem) {
    throw Error("plan: " + where + ": " + problem.what());
  }
  if (const auto* judge = std::get_if<ops::JudgeOverflow>(&what.op))
    bound.scale_at = writes.front(), bound.scale_start = judge->start,
    bound.kept = device_.keep(index, first_of(bound.scale_at, kLossScaleFloats));
  if (what.phase == Phase::Forward && writes_loss(what.op)) {
    if (writes.empty() || writes.back().elements < 1) throw Error("plan", where, "a loss that is not written", "an output");
    bound.loss = losses_of_run_++;
    bound.loss_at = writes.back();
    bound.kept = device_.keep(index, first_of(bound.loss_at, 1));
  }
  if (!options_.routers.empty()) bound.experts = counting_of(options_.routers, role_, instruction, writes, place_.expert_part);
  if (bound.experts.counts()) bound.kept = device_.keep(index, bound.experts.numbers);
  return bound;
}

MemoryRange Interpreter::stretch(const Use& use, const Action& action, Bytes offset, const std::string& where) const {
  const Operand operand = memory_.operand(use, value_of(use.slot, action), where);
  const Bytes bytes = size_of(operand.dtype) * operand.elements - offset;
  return {.data = operand.data + offset.value, .bytes = bytes, .dtype = operand.dtype};
}

static void expect_operands(const Instruction& instruction, bool reads, bool writes, const std::string& where) {
  if (reads && instruction.reads.empty()) throw Error("plan", where, "nothing to read", "a block");
  if (writes && instruction.writes.empty()) throw Error("plan", where, "nothing to write", "a block");
}

std::unique_ptr<StreamTask> Interpreter::bind_collective(const RankStep& step, const Action& action,
                                                         const Instruction& instruction, const std::string& where) {
  expect_operands(instruction, true, true, where);
  const auto& what = std::get<Collective>(instruction.what);
  Bytes offset = {};  // with a slice, the operands are the part of the blocks that belongs to the rank's position in that group
  if (what.slice.valid()) offset = what.bytes * place_in_group(ranks_, what.slice, place_.rank);
  return communicator_.collective({.what = what,
                                   .members = step.members,
                                   .sequence = step.sequence,
                                   .from = stretch(instruction.reads[0], action, offset, where),
                                   .to = stretch(instruction.writes[0], action, offset, where),
                                   .where = where});
}

std::unique_ptr<StreamTask> Interpreter::bind_exchange(const RankStep& step, const Action& action,
                                                       const Instruction& instruction, const std::string& where) {
  const auto& what = std::get<Exchange>(instruction.what);
  expect_operands(instruction, step.to.valid(), step.from.valid(), where);
  Bytes offset = {};
  if (what.slice.valid()) offset = what.bytes * place_in_group(ranks_, what.slice, place_.rank);
  const auto part = [&](const Use& use) {
    MemoryRange all = stretch(use, action, offset, where);
    if (all.bytes < what.bytes)
      throw Error("plan", where, "a block of " + std::to_string(all.bytes.value) + " bytes",
                  "at least " + std::to_string(what.bytes.value));
    all.bytes = what.bytes;
    return all;
  };
  ExchangeCall call{
      .to = step.to, .from = step.from, .tag = what.tag, .sent = step.sent, .received = step.received, .where = where};
  if (step.to.valid()) call.send = part(instruction.reads[0]);
  if (step.from.valid()) call.receive = part(instruction.writes[0]);
  return communicator_.exchange(call);
}

std::unique_ptr<StreamTask> Interpreter::bind_copy(const Action& action, const Instruction& instruction,
                                                   const std::string& where) {
  expect_operands(instruction, true, true, where);
  const auto& what = std::get<Copy>(instruction.what);
  const auto part = [&](const Use& use) {
    const bool sliced = what.slice.valid() && stretch(use, action, {}, where).bytes > what.bytes;
    return stretch(use, action, sliced ? what.bytes * place_in_group(ranks_, what.slice, place_.rank) : Bytes{}, where);
  };
  const MemoryRange from = part(instruction.reads[0]), to = part(instruction.writes[0]);
  if (from.bytes < what.bytes || to.bytes < what.bytes)
    throw Error("plan", where, "a copy of " + std::to_string(what.bytes.value) + " bytes",
                "blocks of at least that size: " + std::to_string(std::min(from.bytes, to.bytes).value));
  return device_.copy(to.data, from.data, what.bytes);
}

}  // namespace foreshard
