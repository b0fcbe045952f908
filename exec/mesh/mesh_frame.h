// What stands before every message between two processes. Used only by exec/mesh/ and tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "exec/base/steady_now.h"

namespace foreshard {

// Lent: a message that the receiver takes itself from the sender's memory, at the address after the frame.
enum class MeshKind : std::uint32_t { Message, Beat, Failed, Bye, Lent };

struct MeshFrame {
  static constexpr std::uint32_t kMagic = 0x66736833;  // tells another program, version or byte order
  std::uint32_t magic = kMagic;
  MeshKind kind = MeshKind::Message;
  std::int32_t from = 0, to = 0;  // ranks; -1 - process between processes
  std::uint64_t channel = 0;
  std::int64_t when = 0;  // on the clock of process 0
  std::int64_t bytes = 0;
};
static_assert(sizeof(MeshFrame) == 40);

inline constexpr std::int64_t kMostGreeting = 1 << 16;  // bytes of the first words of a connection
inline constexpr std::int64_t kMostWords = 1 << 20;     // of an answer, a beat or a reason
inline constexpr std::int64_t kMostMessage = std::int64_t{1} << 40U;
inline constexpr std::int64_t kMostJoined = 1000;                  // instructions that a device told as one
inline constexpr std::int64_t kMostTime = std::int64_t{1} << 61U;  // nanoseconds: sums and differences of two fit

inline constexpr std::uint64_t kControl = 0;                   // the channel of words between processes
inline constexpr std::uint64_t kWorks = 1, kCommunicates = 2;  // in the channel of a beat

// Throws DeviceError for what no process of this version sends.
void check_frame(const MeshFrame& frame, const std::string& peer);

}  // namespace foreshard
