// Communicator between ranks that are threads of one process. Every rank publishes its pointers; each sums (or copies) its own
// slice from all of them; then all wait for each other. Nothing is copied twice.
//
//   all-reduce   rank 0   [ slice 0 | slice 1 | slice 2 ]     rank r sums slice r of all sources and writes it
//                rank 1   [ slice 0 | slice 1 | slice 2 ]     to slice r of all destinations: in place is safe,
//                rank 2   [ slice 0 | slice 1 | slice 2 ]     nobody else touches slice r
#pragma once

#include <deque>
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
  class CollectiveTask;
  class ExchangeTask;

  Party& party(const CollectiveCall& call);
  Parcel& parcel(RankId from, RankId to, const std::string& tag, std::int64_t sequence, Bytes bytes, bool sending,
                 const std::string& where);

  const Stop& stop_;
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
