// Matches messages of other ranks and processes with receives, per channel and in order, as an MPI library does. It holds the messages that
// arrived before their receive was posted, and the posted receives whose message has not arrived. Not thread-safe: the caller holds the
// lock of the mesh.
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

// A receive. Its message is written directly to `place`, which must stay valid until the message has arrived or the receive was cancelled
// (`forget`).
struct MeshReceive {
  // Idle: not posted. Posted: waits for its message. Filling: bytes of the message are being written to `place`. Here: the message is
  // complete in `place`, or it is lent and `lent` says where it is. Wrong: the message has another size than `place`.
  enum class State : std::uint8_t { Idle, Posted, Filling, Here, Wrong };
  std::span<std::byte> place = {};
  std::condition_variable* changed = nullptr;  // notified when `state` becomes Here or Wrong, or the run fails
  std::int64_t when = 0;                       // MeshFrame::when of the message, converted to this process's clock
  State state = State::Idle;
  std::uint64_t lent = 0;  // address of the message in the sender's memory; 0: the message is not lent
  std::size_t found = 0;   // bytes of the message

  bool arrived() const { return state == State::Here || state == State::Wrong; }
};

std::string sizes(const MeshReceive& arrival);  // for an error in state Wrong: "a message of 3 bytes instead of 4 bytes"

// A message that arrived before its receive was posted.
struct MeshMessage {
  std::vector<std::byte> bytes = {};
  std::int64_t when = 0;   // as MeshReceive::when
  std::uint64_t lent = 0;  // as MeshReceive::lent; if not 0, `bytes` is empty
  std::size_t size = 0;    // bytes of a lent message
};

class MeshInbox {
 public:
  using Channel = std::tuple<std::int32_t, std::int32_t, std::uint64_t>;  // `from`, `to` and `channel` of a MeshFrame

  // Completes the oldest posted receive of the channel with this message and returns true. If there is none, it keeps the message and
  // returns false.
  bool put(const Channel& channel, MeshMessage message);
  // Completes `arrival` with the oldest message that is kept for the channel. If there is none, `arrival` becomes a posted receive.
  void post(const Channel& channel, MeshReceive& arrival);
  // Removes the oldest posted receive of the channel and returns it; null if there is none.
  MeshReceive* next_place(const Channel& channel);
  // Removes the oldest message kept for the channel and returns it.
  std::optional<MeshMessage> next(const Channel& channel);
  bool has(const Channel& channel) const;  // whether a message is kept for the channel
  // Cancels a posted receive.
  void forget(const Channel& channel, MeshReceive& arrival) { std::erase(channels_[channel].places, &arrival); }
  void wake_all();  // notifies the condition variable of every posted receive

  std::int64_t waiting() const { return waiting_; }  // bytes of all messages that are kept

 private:
  struct Hash {
    std::size_t operator()(const Channel& channel) const;
  };
  struct Waiting {  // at most one of the two is not empty
    std::deque<MeshMessage> messages = {};
    std::deque<MeshReceive*> places = {};
  };

  std::unordered_map<Channel, Waiting, Hash> channels_;
  std::int64_t waiting_ = 0;
};

}  // namespace foreshard
