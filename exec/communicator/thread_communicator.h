// Communicator between ranks that are threads of one process. In a collective of rounds (RoundWalk::wanted), every member reads what is
// sent to it directly from the sender's memory, adds it to its own data or copies it, and then publishes that it is done with the round. A
// collective without rounds is one step: every rank publishes its pointers, each sums (or copies) its own slice from all of them, then all
// wait for each other. For example, an all-reduce:
//
//   rank 0   [ slice 0 | slice 1 | slice 2 ]     rank r sums slice r of all inputs and writes it
//   rank 1   [ slice 0 | slice 1 | slice 2 ]     to slice r of all outputs. In place is safe,
//   rank 2   [ slice 0 | slice 1 | slice 2 ]     because no other rank accesses slice r
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <tuple>

#include "exec/base/stop.h"
#include "exec/communicator/communicator.h"

namespace foreshard {

// The state that the ranks of a process share: one entry per collective and per message. One thread makes the tasks of all ranks, then the
// threads of the ranks run them.
class ThreadMeetings {
 public:
  explicit ThreadMeetings(const Stop& stop) : stop_(stop) {}
  ThreadMeetings(const ThreadMeetings&) = delete;
  ThreadMeetings& operator=(const ThreadMeetings&) = delete;

  // If set, it is called for every message of a collective in rounds, by the receiver's thread.
  std::function<void(RankId from, RankId to, Bytes bytes)> on_message = {};

  // After all ranks are ready: throws Error unless every collective has all members and every send its receive.
  void check() const;

 private:
  friend class ThreadCommunicator;
  struct PendingCollective {  // one collective of a group; it runs once per run of the plan
    Collective what = {};
    std::string where = {};              // CollectiveCall::where of the first member
    std::size_t members = 0, known = 0;  // size of the group; number of members that have made their task
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t arrived = 0;                // members that wait at the barrier
    std::uint64_t generation = 0;           // number of times that all members have met at the barrier
    std::int64_t met = 0;                   // when they met in this run, nanoseconds of steady_now()
    std::vector<const std::byte*> sources;  // [member] input
    std::vector<std::byte*> destinations;   // [member] output
    std::vector<std::byte*> bases;          // [member] `base` of RoundWalk::piece
    std::vector<std::uint64_t> progress;    // [member] number of rounds that it has done, over all runs
  };
  struct PendingMessage {  // one message from a rank to another; it is sent once per run of the plan
    Bytes bytes = {};
    std::string sender = {}, receiver = {};  // ExchangeCall::where of both sides; empty: its task is not made yet
    std::mutex mutex;
    std::condition_variable changed;
    const std::byte* data = nullptr;                    // in the sender's memory
    std::uint64_t sent = 0, waited_for = 0, taken = 0;  // runs in which it was sent, its receiver arrived, and it was copied
    std::int64_t met = 0;                               // when both sides had arrived
  };
  class MeetingTask;
  class CollectiveTask;
  class RoundsTask;
  class ExchangeTask;

  PendingCollective& pending_collective(const CollectiveCall& call);
  PendingMessage& pending_message(RankId from, RankId to, const std::string& tag, std::int64_t sequence, Bytes bytes,
                                  bool sending, const std::string& where);

  std::unique_ptr<std::byte[]> take_memory();  // RoundWalk::kOwnMemory bytes, to be returned by give_memory
  void give_memory(std::unique_ptr<std::byte[]> memory);

  const Stop& stop_;
  std::mutex memory_mutex_;
  std::vector<std::unique_ptr<std::byte[]>> free_memory_;
  std::deque<PendingCollective> pending_collectives_;
  std::deque<PendingMessage> pending_messages_;
  std::map<std::tuple<GroupId, RankId, std::int64_t>, PendingCollective*> collective_of_;  // (group, first member, sequence)
  std::map<std::tuple<RankId, RankId, std::string, std::int64_t>, PendingMessage*> message_of_;
};

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(ThreadMeetings& meetings, RankId rank) : meetings_(meetings), rank_(rank) {}
  std::unique_ptr<StreamTask> collective(const CollectiveCall& call) override;
  std::unique_ptr<StreamTask> exchange(const ExchangeCall& call) override;

 private:
  ThreadMeetings& meetings_;
  RankId rank_;
};

}  // namespace foreshard
