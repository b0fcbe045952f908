// Player: runs the programs of all rank classes at once on a Clock. In this file a player is one of them, the representative of its class
// (PlayerInput::Player). A step begins when its stream is free and everything it waits for is done. An exchange or collective begins when all
// its parties have arrived; it takes its setup time and then moves bytes.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/result/trace.h"
#include "replay/clock.h"
#include "replay/compute_slowdown.h"
#include "replay/link_use.h"
#include "replay/player_input.h"
#include "replay/replay.h"

namespace foreshard::player {

class Player final : public Listener {
 public:
  Player(Clock& clock, const Plan& plan, const PlayerInput& input, const Quotient& quotient, const FlowPaths& paths,
         const ReplayOptions& options, std::span<Span> spans);  // `spans`: written, one element per span of the input

  void play();  // runs to the end; throws Error when cancelled or when players wait for each other (deadlock)
  void finished(Token token) override;

  const LinkUse& link_use() const { return use_; }
  double makespan() const { return makespan_; }  // seconds
  std::int64_t events() const { return clock_.events(); }

 private:
  enum Event : std::uint32_t { kStreamDone, kSetUp, kFlowDone };
  enum class Phase : std::uint8_t { Blocked, Busy, Over };

  struct Stream {
    const SegmentSteps* steps = nullptr;                          // of its current action
    const Step* step = nullptr;                                   // its current step (the head of the stream)
    std::int32_t player = 0, action = -1, run = 0, position = 0;  // `position`: of the step in its action
    std::int32_t pass = -1, place = -1;                           // of the action in the order of issue (IssueOrder)
    // The last instruction that has ended: IssueOrder::sequence of its action, and its number in that.
    std::int64_t done_sequence = std::numeric_limits<std::int64_t>::min();
    std::int32_t done_instruction = -1;
    std::int32_t checked = 0;  // dependencies of the step that are known to be done
    std::int32_t span = 0;     // index of the next span to be written
    std::int32_t parts = 0;    // transfers of the step that have not ended
    Phase phase = Phase::Blocked;
    bool slows = false;           // the step takes compute units from other streams
    double ready = 0, begin = 0;  // seconds: when all dependencies were done, when the step began
  };
  // A transfer, from the arrival of its first party to its end. A party is the number 2 * stream, plus 1 for its receive side.
  struct Transfer {
    std::int32_t meeting = -1, number = 0;  // of a copy: -1. `number` counts the uses of the meeting
    // Parties arrived; their list; the next pending transfer of the meeting.
    std::int32_t arrived = 0, first_party = -1, next = -1;
    PlayerInput::Phases phases = {};
    std::int32_t phase = 0;       // the current phase
    double setup = 0, bytes = 0;  // the largest of all parties
    bool exclusive = false;       // nothing else can cross its links during this transfer
  };

  void set_up_streams();
  void enter(Stream& stream, int index);
  bool next_action(Stream& stream) const;
  bool advance(int player);
  bool try_head(int index);
  bool is_done(const Stream& of, const Position& position) const;
  bool dependencies_done(Stream& stream);
  bool start(int index);
  double seconds_of(const Stream& stream) const;
  void arrive(int index, bool receives, const MeetingUse& use, const PlayerInput::Phases& phases);
  int pending(int meeting, int number);
  void depart(int transfer);
  double isolated_time(Transfer& transfer) const;
  void next_phase(int transfer);
  void phase_done(int transfer);
  void slow(int index);
  void complete(int index);
  void write_span(Stream& stream, int index);
  void settle();
  [[noreturn]] void report_block() const;

  Clock& clock_;
  const Plan& plan_;
  const PlayerInput& input_;
  const FlowPaths& paths_;
  const Quotient& quotient_;
  const ReplayOptions& options_;
  ComputeSlowdown slowdown_;
  LinkUse use_;
  std::vector<int> route_of_ = {};  // [flow class]: route of the clock; -1: isolated, or crosses no link
  std::vector<Stream> streams_ = {};
  std::vector<Transfer> transfers_ = {};
  std::vector<int> free_transfers_ = {};
  // [meeting]: index into transfers_ of its first transfer that waits for parties; -1: none.
  std::vector<int> first_pending_ = {};
  std::vector<int> next_party_ = {};  // [party]: the next party of the same transfer; -1: none
  std::vector<int> dirty_ = {};       // players with a stream that may be able to begin its step
  std::vector<char> is_dirty_ = {};
  std::span<Span> spans_ = {};
  std::size_t spans_done_ = 0, next_report_ = 1;
  double makespan_ = 0;
};

}  // namespace foreshard::player
