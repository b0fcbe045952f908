// Where messages of other ranks and processes arrive, by channel: messages that no receive was posted for yet, and posted receives that no message has come for yet.
// Whoever calls holds the lock of the mesh.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace foreshard {

// A message that goes straight to where it belongs. Its place must stay until it is here or forgotten.
struct MeshArrival {
  // Here: in its place, or lent, as it is known where it stands. Wrong: of another size.
  enum class State : std::uint8_t { Idle, Posted, Filling, Here, Wrong };
  std::span<std::byte> place = {};
  std::condition_variable* changed = nullptr;  // of whoever waits for it
  std::int64_t when = 0;                       // the sender's, on the own clock
  State state = State::Idle;
  std::uint64_t lent = 0;  // its address in the sender's memory; 0: it is not lent
  std::size_t found = 0;   // bytes of a wrong one

  bool arrived() const { return state == State::Here || state == State::Wrong; }
};

std::string sizes(const MeshArrival& arrival);  // of a wrong one: "a message of 3 bytes instead of 4 bytes"

struct MeshMessage {
  std::vector<std::byte> bytes = {};
  std::int64_t when = 0;
  std::uint64_t lent = 0;  // as of an arrival; then `bytes` is empty
  std::size_t size = 0;    // of what is lent
};

class MeshInbox {
 public:
  using Channel = std::tuple<std::int32_t, std::int32_t, std::uint64_t>;  // from, to, channel; processes: channel kControl

  // To the first place that waits for it. False: there is none, and the message waits.
  bool put(const Channel& channel, MeshMessage message);
  // The first message that waits arrives there; else the place waits.
  void post(const Channel& channel, MeshArrival& arrival);
  MeshArrival* next_place(const Channel& channel);  // waits no more; null: none waits
  std::optional<MeshMessage> next(const Channel& channel);
  bool has(const Channel& channel) const;  // a message that waits
  void forget(const Channel& channel, MeshArrival& arrival) { std::erase(channels_[channel].places, &arrival); }
  void wake_all();  // who waits for a place to be filled

  std::int64_t waiting() const { return waiting_; }  // bytes of messages

 private:
  struct Hash {
    std::size_t operator()(const Channel& channel) const;
  };
  struct Waiting {  // one of the two is empty
    std::deque<MeshMessage> messages = {};
    std::deque<MeshArrival*> places = {};
  };

  std::unordered_map<Channel, Waiting, Hash> channels_;
  std::int64_t waiting_ = 0;
};

}  // namespace foreshard
