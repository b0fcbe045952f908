#include "replay/player.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace foreshard::player {

Player::Player(Clock& clock, const Plan& plan, const PlayerInput& input, const Quotient& quotient, const FlowPaths& paths,
               const ReplayOptions& options, std::span<Span> spans)
    : clock_(clock),
      plan_(plan),
      input_(input),
      paths_(paths),
      quotient_(quotient),
      options_(options),
      slowdown_(input, clock),
      use_(quotient),
      spans_(spans) {
  FS_ASSERT(spans.size() == input.spans());
  for (const BytesPerSecond capacity : paths.links) clock_.add_link(capacity);
  for (const FlowPath& path : paths.of_flow) route_of_.push_back(path.route.empty() ? -1 : clock_.add_route(path.route));
  clock_.start();
  first_pending_.assign(input.meetings.size(), -1);
  next_party_.assign(2 * static_cast<std::size_t>(input.streams), -1);
  is_dirty_.assign(input.players.size(), false);
  set_up_streams();
}

void Player::set_up_streams() {
  streams_.resize(static_cast<std::size_t>(input_.streams));
  for (std::size_t p = 0; p < input_.players.size(); ++p)
    for (int s = 0; s < input_.players[p].streams; ++s) {
      const auto index = static_cast<std::size_t>(input_.players[p].first_stream + s);
      streams_[index].player = static_cast<std::int32_t>(p);
      streams_[index].span = input_.first_span[index];
    }
  for (std::size_t i = 0; i < streams_.size(); ++i) enter(streams_[i], static_cast<int>(i));
}

void Player::play() {
  for (std::size_t p = 0; p < input_.players.size(); ++p) {
    dirty_.push_back(static_cast<int>(p));
    is_dirty_[p] = true;
  }
  settle();
  clock_.run(*this);
  if (options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed)) throw Error("cancelled");
  if (spans_done_ != spans_.size()) report_block();
}

void Player::finished(Token token) {
  if (options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed))
    return;  // no new request is made, so the clock ends when the present ones have ended
  switch (static_cast<Event>(token.what)) {
    case kStreamDone: complete(static_cast<int>(token.which)); break;
    case kSetUp: next_phase(static_cast<int>(token.which)); break;
    case kFlowDone: phase_done(static_cast<int>(token.which)); break;
  }
  settle();
}

void Player::settle() {
  while (!dirty_.empty()) {
    const int player = dirty_.back();
    dirty_.pop_back();
    is_dirty_[static_cast<std::size_t>(player)] = false;
    while (advance(player)) {
    }
  }
  if (spans_done_ < next_report_ || !options_.progress) return;
  next_report_ =
      std::min(spans_done_ + std::max<std::size_t>(1, spans_.size() / 100), std::max(spans_.size(), spans_done_ + 1));
  options_.progress(static_cast<double>(spans_done_) / static_cast<double>(spans_.size()));
}

// Makes the next step of the stream its current one; after the last step of the last run the stream is Over.
void Player::enter(Stream& stream, int index) {
  const PlayerInput::Player& player = input_.players[static_cast<std::size_t>(stream.player)];
  const int own = index - player.first_stream;
  ++stream.position;
  stream.checked = 0;
  stream.phase = Phase::Blocked;
  while (stream.action < 0 || stream.position >= stream.steps->count(own)) {
    if (!next_action(stream)) {
      stream.phase = Phase::Over;
      return;
    }
    stream.steps = (*player.steps)[player.program->issues[static_cast<std::size_t>(stream.action)].segment.index()];
    stream.position = 0;
  }
  stream.step = &stream.steps->at(own, stream.position);
}

// Makes the action that is issued next that of the stream. Pass -1 is the first actions of run 0, issued ahead of pass 0.
bool Player::next_action(Stream& stream) const {
  const IssueOrder& order = input_.players[static_cast<std::size_t>(stream.player)].program->order;
  do {
    if (++stream.place == static_cast<std::int32_t>(order.pass.size())) {
      stream.place = 0;
      if (++stream.pass == input_.runs) return false;
    }
    if (order.pass.empty()) return false;
    const IssueOrder::Issued& issued = order.pass[static_cast<std::size_t>(stream.place)];
    stream.action = issued.action, stream.run = stream.pass + (issued.ahead ? 1 : 0);
  } while (stream.run < 0 || stream.run >= input_.runs);
  return true;
}

// Begins every step that can begin. True when a step also ended at once, so that others may be able to begin.
bool Player::advance(int player) {
  const PlayerInput::Player& who = input_.players[static_cast<std::size_t>(player)];
  bool progress = false;
  for (int s = 0; s < who.streams; ++s)
    while (try_head(who.first_stream + s)) progress = true;
  return progress;
}

bool Player::try_head(int index) {
  Stream& stream = streams_[static_cast<std::size_t>(index)];
  if (stream.phase != Phase::Blocked || !dependencies_done(stream)) return false;
  stream.ready = stream.begin = clock_.now().value;
  stream.phase = Phase::Busy;
  return start(index);
}

bool Player::is_done(const Stream& of, const Position& position) const {
  const std::int32_t run = of.run - position.runs_back;
  if (position.action < 0 || run < 0 || run >= input_.runs) return true;
  const PlayerInput::Player& player = input_.players[static_cast<std::size_t>(of.player)];
  const Stream& other = streams_[static_cast<std::size_t>(player.first_stream + position.stream)];
  const std::int64_t sequence = player.program->order.sequence(position.action, run);
  if (sequence != other.done_sequence) return sequence < other.done_sequence;
  return position.instruction <= other.done_instruction;
}

bool Player::dependencies_done(Stream& stream) {
  const Step& step = *stream.step;
  const std::int32_t afters = step.end_after - step.first_after, all = afters + step.end_wait - step.first_wait;
  const RoleProgram& program = *input_.players[static_cast<std::size_t>(stream.player)].program;
  for (; stream.checked < all; ++stream.checked) {
    if (stream.checked < afters) {
      const After& after = stream.steps->afters[static_cast<std::size_t>(step.first_after + stream.checked)];
      if (!is_done(stream, {stream.action, after.instruction, after.stream})) return false;
    } else {
      const std::int32_t first = program.issues[static_cast<std::size_t>(stream.action)].first_binding;
      const std::int32_t wait = first + step.first_wait + stream.checked - afters;
      if (!is_done(stream, program.bindings[static_cast<std::size_t>(wait)])) return false;
    }
  }
  return true;
}

// Seconds of the current step: of a transfer, before its first byte; else its duration.
double Player::seconds_of(const Stream& stream) const {
  const Step& step = *stream.step;
  if (!options_.measured || step.kind == StepKind::Exchange || step.kind == StepKind::Collective) return step.seconds;
  return options_
      .measured(quotient_.classes[static_cast<std::size_t>(stream.player)].members.front(), stream.action, step.first)
      .value;
}

// Begins the current step; true when it has ended already.
bool Player::start(int index) {
  Stream& stream = streams_[static_cast<std::size_t>(index)];
  const Step& step = *stream.step;
  const Token done{kStreamDone, static_cast<std::uint32_t>(index)};
  switch (step.kind) {
    case StepKind::Compute:
      if (slowdown_.worker(index) >= 0 && step.seconds > 0) {
        slowdown_.compute(stream.player, index, *stream.steps, step, done);
        return false;
      }
      [[fallthrough]];
    case StepKind::Fixed:
      if (const double seconds = seconds_of(stream); seconds > 0) {
        slow(index);
        clock_.after({seconds}, done);
        return false;
      }
      complete(index);
      return true;
    case StepKind::Exchange:
      stream.parts = (step.slot >= 0 ? 1 : 0) + (step.from_slot >= 0 ? 1 : 0);
      if (step.slot >= 0) arrive(index, false, step.meeting, {});
      if (step.from_slot >= 0) arrive(index, true, step.from, {});
      return false;
    case StepKind::Collective:
      stream.parts = 1;
      arrive(index, false, step.meeting, input_.phases_at(stream.player, step.slot));
      return false;
    case StepKind::Copy:
      stream.parts = 1;
      arrive(index, false, {}, input_.phases_at(stream.player, step.slot));
      return false;
  }
  return false;
}

// The transfer with this number at a meeting; a new one when no party has arrived yet.
int Player::pending(int meeting, int number) {
  if (meeting >= 0)
    for (int t = first_pending_[static_cast<std::size_t>(meeting)]; t >= 0; t = transfers_[static_cast<std::size_t>(t)].next)
      if (transfers_[static_cast<std::size_t>(t)].number == number) return t;
  if (free_transfers_.empty()) {
    free_transfers_.push_back(static_cast<int>(transfers_.size()));
    transfers_.emplace_back();
  }
  const int t = free_transfers_.back();
  free_transfers_.pop_back();
  Transfer& transfer = transfers_[static_cast<std::size_t>(t)];
  transfer = {.meeting = meeting, .number = number};
  if (meeting >= 0) transfer.next = std::exchange(first_pending_[static_cast<std::size_t>(meeting)], t);
  return t;
}

// A party arrives at its transfer, which begins when all have arrived. A copy (no meeting point) has one party.
void Player::arrive(int index, bool receives, const MeetingUse& use, const PlayerInput::Phases& phases) {
  const Stream& stream = streams_[static_cast<std::size_t>(index)];
  int meeting = -1, number = 0;
  if (use.point >= 0) {
    const RoleProgram& program = *input_.players[static_cast<std::size_t>(stream.player)].program;
    meeting = input_.meeting(stream.player, use.point);
    number = stream.run * program.uses_per_run[static_cast<std::size_t>(use.point)] + program.number(stream.action, use);
  }
  const int t = pending(meeting, number);
  Transfer& transfer = transfers_[static_cast<std::size_t>(t)];
  const int party = 2 * index + (receives ? 1 : 0);
  next_party_[static_cast<std::size_t>(party)] = std::exchange(transfer.first_party, party);
  transfer.setup = std::max(transfer.setup, seconds_of(stream));
  transfer.bytes = std::max(transfer.bytes, stream.step->bytes);
  if (phases.count > 0) transfer.phases = phases;
  if (meeting >= 0 && ++transfer.arrived < input_.meetings[static_cast<std::size_t>(meeting)].parties) return;
  depart(t);
}

void Player::depart(int t) {
  Transfer& transfer = transfers_[static_cast<std::size_t>(t)];
  if (transfer.meeting >= 0) {
    int* link = &first_pending_[static_cast<std::size_t>(transfer.meeting)];
    while (*link != t) link = &transfers_[static_cast<std::size_t>(*link)].next;
    *link = transfer.next;
    const PlayerInput::Meeting& meeting = input_.meetings[static_cast<std::size_t>(transfer.meeting)];
    if (meeting.phases.count > 0) transfer.phases = meeting.phases;
  }
  const double now = clock_.now().value;
  for (int party = transfer.first_party; party >= 0; party = next_party_[static_cast<std::size_t>(party)]) {
    Stream& stream = streams_[static_cast<std::size_t>(party / 2)];
    stream.begin = now;
    slow(party / 2);
  }
  transfer.phase = -1;
  const Seconds setup{transfer.setup};
  if (const double whole = setup.value + isolated_time(transfer); transfer.phase == 0 && whole > 0)
    clock_.after({whole}, {kFlowDone, static_cast<std::uint32_t>(t)});
  else if (setup.value > 0)
    clock_.after(setup, {kSetUp, static_cast<std::uint32_t>(t)});
  else
    next_phase(t);
}

// Seconds of a transfer of one phase with nothing else on its links; it counts as being in that phase from then on. Others: 0.
double Player::isolated_time(Transfer& transfer) const {
  if (transfer.phases.count != 1) return 0;
  const auto flow = static_cast<std::size_t>(input_.phase_flows[static_cast<std::size_t>(transfer.phases.first)]);
  const double bytes = transfer.bytes * quotient_.flows[flow].bytes;
  const Stream& party = streams_[static_cast<std::size_t>(transfer.first_party / 2)];
  transfer.exclusive =
      paths_.of_flow[flow].exclusive || (input_.runs == 1 && party.action < paths_.of_flow[flow].exclusive_before);
  if (!transfer.exclusive || bytes <= 0) return 0;
  transfer.phase = 0;
  return bytes * paths_.of_flow[flow].seconds_per_byte;
}

// Moves the bytes of the next phase, or ends the transfer after the last.
void Player::next_phase(int t) {
  Transfer& transfer = transfers_[static_cast<std::size_t>(t)];
  const Token done{kFlowDone, static_cast<std::uint32_t>(t)};
  while (++transfer.phase < transfer.phases.count) {
    const auto flow =
        static_cast<std::size_t>(input_.phase_flows[static_cast<std::size_t>(transfer.phases.first + transfer.phase)]);
    const double bytes = transfer.bytes * quotient_.flows[flow].bytes;
    if (bytes <= 0 || quotient_.flows[flow].bundles.empty()) continue;
    if (!paths_.of_flow[flow].exclusive) use_.begin(static_cast<int>(flow), clock_.now().value);
    if (paths_.of_flow[flow].isolated)
      clock_.after({bytes * paths_.of_flow[flow].seconds_per_byte}, done);
    else
      clock_.transfer(route_of_[flow], bytes, done);
    return;
  }
  const int first_party = transfer.first_party;
  free_transfers_.push_back(t);
  for (int party = first_party; party >= 0;) {
    const int next = next_party_[static_cast<std::size_t>(party)];
    if (--streams_[static_cast<std::size_t>(party / 2)].parts == 0) complete(party / 2);
    party = next;
  }
}

void Player::phase_done(int t) {
  const Transfer& transfer = transfers_[static_cast<std::size_t>(t)];
  const int flow = input_.phase_flows[static_cast<std::size_t>(transfer.phases.first + transfer.phase)];
  const double bytes = transfer.bytes * quotient_.flows[static_cast<std::size_t>(flow)].bytes;
  const FlowPath& path = paths_.of_flow[static_cast<std::size_t>(flow)];
  if (path.exclusive || transfer.exclusive)
    use_.alone(flow, bytes * path.seconds_per_byte, bytes);
  else
    use_.end(flow, clock_.now().value, bytes);
  next_phase(t);
}

// The current step of the stream begins to take compute units from other streams.
void Player::slow(int index) {
  Stream& stream = streams_[static_cast<std::size_t>(index)];
  if (stream.step->sm_share <= 0 || stream.slows) return;
  stream.slows = true;
  slowdown_.begin(stream.player, index, stream.step->sm_share);
}

void Player::complete(int index) {
  Stream& stream = streams_[static_cast<std::size_t>(index)];
  const Step& step = *stream.step;
  if (stream.slows) {
    stream.slows = false;
    slowdown_.end(stream.player, index);
  }
  for (std::int32_t a = step.first_merged; a < step.end_merged; ++a) {
    const MergedCollective& merged = stream.steps->merged[static_cast<std::size_t>(a)];
    const PlayerInput::Phases& phases = input_.phases_at(stream.player, merged.slot);
    for (std::int32_t p = 0; p < phases.count; ++p) {
      const int flow = input_.phase_flows[static_cast<std::size_t>(phases.first + p)];
      if (input_.owner[static_cast<std::size_t>(flow)] != stream.player) continue;
      const double bytes = merged.bytes * quotient_.flows[static_cast<std::size_t>(flow)].bytes;
      use_.alone(flow, bytes * paths_.of_flow[static_cast<std::size_t>(flow)].seconds_per_byte, bytes);
    }
  }
  write_span(stream, index);
  stream.done_sequence =
      input_.players[static_cast<std::size_t>(stream.player)].program->order.sequence(stream.action, stream.run);
  stream.done_instruction = step.last;
  enter(stream, index);
  if (is_dirty_[static_cast<std::size_t>(stream.player)]) return;
  is_dirty_[static_cast<std::size_t>(stream.player)] = true;
  dirty_.push_back(stream.player);
}

void Player::write_span(Stream& stream, int index) {
  const double now = clock_.now().value;
  makespan_ = std::max(makespan_, now);
  spans_[static_cast<std::size_t>(stream.span++)] = {
      .who = {stream.player},
      .action = stream.run *
                    static_cast<std::int32_t>(input_.players[static_cast<std::size_t>(stream.player)].program->issues.size()) +
                stream.action,
      .instruction = stream.step->first,
      .count = stream.step->count,
      .stream = {index - input_.players[static_cast<std::size_t>(stream.player)].first_stream},
      .ready = to_nanoseconds({stream.ready}),
      .begin = to_nanoseconds({stream.begin}),
      .end = to_nanoseconds({now})};
  ++spans_done_;
}

void Player::report_block() const {
  std::string blocked;
  int named = 0;
  for (const Stream& stream : streams_) {
    if (stream.phase == Phase::Over) continue;
    if (++named > 4) {
      blocked += ", ...";
      break;
    }
    const PlayerInput::Player& player = input_.players[static_cast<std::size_t>(stream.player)];
    const SegmentId segment = player.program->issues[static_cast<std::size_t>(stream.action)].segment;
    blocked += (blocked.empty() ? "" : ", ") + std::string("role '") + plan_.roles[player.role.index()].name + "' rank " +
               std::to_string(quotient_.classes[static_cast<std::size_t>(stream.player)].members.front().value) +
               " at action " + std::to_string(stream.action) + " '" +
               plan_.segments[segment.index()].instructions[static_cast<std::size_t>(stream.step->first)].name + "'";
  }
  throw Error("plan", "order of exchanges and collectives", "ranks that wait for each other: " + blocked,
              "one total order that agrees with every rank's (foreshard check-plan names the mistake)");
}

}  // namespace foreshard::player
