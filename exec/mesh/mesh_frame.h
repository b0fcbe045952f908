// The header (frame) that precedes every message between two processes. Used by exec/mesh, exec/interpreter and tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "exec/base/steady_now.h"

namespace foreshard {

// Message: data, of a rank or of a process. Beat: a sign of life (heartbeat) with the progress of the sender. Failed: the sender has
// failed, the reason follows. Bye: the sender leaves, nothing more follows. Lent: a message that stays in the sender's memory; only its
// address (8 bytes) follows the frame, and the receiver reads the data from there itself.
enum class MeshKind : std::uint32_t { Message, Beat, Failed, Bye, Lent };

struct MeshFrame {
  static constexpr std::uint32_t kMagic = 0x66736833;  // differs for another program, version or byte order
  std::uint32_t magic = kMagic;
  MeshKind kind = MeshKind::Message;
  std::int32_t from = 0, to = 0;  // ranks; for a message between processes, -1 - process
  std::uint64_t channel = 0;  // which of the messages between the two this is, as an MPI tag; of a Beat: kWorks | kCommunicates
  std::int64_t when = 0;      // time of the sender in nanoseconds, on the clock of process 0; of a Beat: ended steps
  std::int64_t bytes = 0;     // size of the message, without the frame
};
static_assert(sizeof(MeshFrame) == 40);

// Limits on what is accepted from another process.
inline constexpr std::int64_t kMostGreeting = 1 << 16;                // bytes of the first message of a connection (MeshHello)
inline constexpr std::int64_t kMostWords = 1 << 20;                   // bytes of a rendezvous answer, a Beat or a Failed
inline constexpr std::int64_t kMostMessage = std::int64_t{1} << 40U;  // bytes of a Message or a Lent
inline constexpr std::int64_t kMostJoined = 1000;  // instructions that a device reports as one (exec/interpreter)
inline constexpr std::int64_t kMostTime = std::int64_t{1} << 61U;  // nanoseconds; sums and differences of two do not overflow

inline constexpr std::uint64_t kControl = 0;  // the channel of text messages between processes
// Flags in the channel of a Beat: see MeshPeer::works, MeshRunning::communicates.
inline constexpr std::uint64_t kWorks = 1, kCommunicates = 2;

// Throws DeviceError, naming `peer`, for a frame that no process of this version sends.
void check_frame(const MeshFrame& frame, const std::string& peer);

}  // namespace foreshard
