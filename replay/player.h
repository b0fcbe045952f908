// Player: walks the programs of all players at once, over a Clock. An instruction begins when its
// stream is free and everything it waits for is done; exchanges and collectives begin when all parties are there, pay
// their setup time and then move bytes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/result/trace.h"
#include "replay/cast.h"
#include "replay/clock.h"
#include "replay/link_use.h"
#include "replay/replay.h"
#include "replay/slowing.h"

namespace foreshard::player {

class Player final : public Listener {
 public:
  Player(Clock& clock, const Plan& plan, const Cast& cast, const Quotient& quotient, const FlowPaths& paths,
         const ReplayOptions& options, std::span<Span> spans);  // room for all spans of the cast

  void play();  // throws Error when cancelled or when the players block each other
  void finished(Token token) override;

  const LinkUse& link_use() const { return use_; }
  double makespan() const { return makespan_; }
  std::int64_t events() const { return clock_.events(); }

 private:
  enum Event : std::uint32_t { kStreamDone, kSetUp, kFlowDone };
  enum class Phase : std::uint8_t { Blocked, Busy, Over };

  struct Stream {
    const SegmentSteps* steps = nullptr;  // of its action
    const Step* step = nullptr;           // at its head
    std::int32_t player = 0, action = -1, run = 0, position = 0;
    std::int32_t done_run = 0, done_action = -1, done_instruction = -1;
    std::int32_t checked = 0;  // dependencies of the head that are known to be done
    std::int32_t span = 0;     // where the next span goes
    std::int32_t parts = 0;    // transfers of the head that have not ended
    Phase phase = Phase::Blocked;
    bool slows = false;
    double ready = 0, begin = 0;
  };
  // A transfer from the first arrival of a party to its end. Parties are listed as 2 * stream + (1: its receive side).
  struct Transfer {
    std::int32_t meeting = -1, number = 0;
    std::int32_t arrived = 0, first_party = -1, next = -1;
    Cast::Phases phases = {};
    std::int32_t phase = 0;
    double setup = 0, bytes = 0;
    bool exclusive = false;  // it has its links to itself, this once
  };

  void set_up_streams();
  void enter(Stream& stream, int index);
  bool advance(int player);
  bool try_head(int index);
  bool is_done(const Stream& of, const Position& position) const;
  bool dependencies_done(Stream& stream);
  bool start(int index);
  double seconds_of(const Stream& stream) const;
  void arrive(int index, bool receives, const MeetingUse& use, const Cast::Phases& phases);
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
  const Cast& cast_;
  const FlowPaths& paths_;
  const Quotient& quotient_;
  const ReplayOptions& options_;
  Slowing slowing_;
  LinkUse use_;
  std::vector<int> route_of_ = {};  // [flow class]; -1: alone or nothing to cross
  std::vector<Stream> streams_ = {};
  std::vector<Transfer> transfers_ = {};
  std::vector<int> free_transfers_ = {};
  std::vector<int> first_pending_ = {};  // [meeting] into transfers_
  std::vector<int> next_party_ = {};     // [2 * stream + side]
  std::vector<int> dirty_ = {};          // players whose streams may go on
  std::vector<char> is_dirty_ = {};
  std::span<Span> spans_ = {};
  std::size_t spans_done_ = 0, next_report_ = 1;
  double makespan_ = 0;
};

}  // namespace foreshard::player
