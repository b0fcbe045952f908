// Communicator between ranks that are threads of one process. A collective of rounds is carried out as such: in each round every member
// takes what is sent to it out of the sender's memory, adds it to its own or keeps it, and tells how far it is. What needs no rounds
// (exec/communicator/round_walk.h) is done at once: every rank publishes its pointers; each sums (or copies) its own slice from all of them;
// then all wait for each other.
//
//   all serve    rank 0   [ slice 0 | slice 1 | slice 2 ]     rank r sums slice r of all sources and writes it
//                rank 1   [ slice 0 | slice 1 | slice 2 ]     to slice r of all destinations: in place is safe,
//                rank 2   [ slice 0 | slice 1 | slice 2 ]     no other rank touches slice r
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <tuple>

#include "exec/base/stop.h"
#include "exec/communicator/communicator.h"

namespace foreshard {

// Where the ranks of a process meet. Made ready by one thread, rank after rank; used by many.
class ThreadMeetings {
 public:
  explicit ThreadMeetings(const Stop& stop) : stop_(stop) {}
  ThreadMeetings(const ThreadMeetings&) = delete;
  ThreadMeetings& operator=(const ThreadMeetings&) = delete;

  // Told of every message of a round: rank, peer, bytes. Called by the receiver.
  std::function<void(RankId from, RankId to, Bytes bytes)> on_message = {};

  // After all ranks are ready: throws Error unless every collective has all members and every send its receive.
  void check() const;

 private:
  friend class ThreadCommunicator;
  struct Party {  // the n-th collective of a group
    Collective what = {};
    std::string where = {};
    std::size_t members = 0, known = 0;
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t arrived = 0;
    std::uint64_t generation = 0;
    std::int64_t met = 0;
    std::vector<const std::byte*> sources;  // [member]
    std::vector<std::byte*> destinations;
    std::vector<std::byte*> bases;        // of rounds: where members work
    std::vector<std::uint64_t> progress;  // rounds that members are done with, of all runs
  };
  struct Parcel {  // the n-th message from one rank to another with a tag
    Bytes bytes = {};
    std::string sender = {}, receiver = {};  // where; empty: not yet known
    std::mutex mutex;
    std::condition_variable changed;
    const std::byte* data = nullptr;
    std::uint64_t sent = 0, waited_for = 0, taken = 0;
    std::int64_t met = 0;
  };
  class MeetingTask;
  class CollectiveTask;
  class RoundsTask;
  class ExchangeTask;

  Party& party(const CollectiveCall& call);
  Parcel& parcel(RankId from, RankId to, const std::string& tag, std::int64_t sequence, Bytes bytes, bool sending,
                 const std::string& where);

  std::unique_ptr<std::byte[]> take_memory();  // RoundWalk::kOwnMemory of it
  void give_memory(std::unique_ptr<std::byte[]> memory);

  const Stop& stop_;
  std::mutex memory_mutex_;
  std::vector<std::unique_ptr<std::byte[]>> free_memory_;
  std::deque<Party> parties_;
  std::deque<Parcel> parcels_;
  std::map<std::tuple<GroupId, RankId, std::int64_t>, Party*> party_of_;  // (group, first member, sequence)
  std::map<std::tuple<RankId, RankId, std::string, std::int64_t>, Parcel*> parcel_of_;
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
