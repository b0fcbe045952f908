// What stands before every message between two processes. Used only by exec/process_mesh*.cpp.
#pragma once

#include <cstdint>
#include <string>

namespace foreshard {

enum class MeshKind : std::uint32_t { Message, Beat, Failed, Bye };

struct MeshFrame {
  static constexpr std::uint32_t kMagic = 0x66736831;  // tells another program, version or byte order
  std::uint32_t magic = kMagic;
  MeshKind kind = MeshKind::Message;
  std::int32_t from = 0, to = 0;  // ranks; -1 - process between processes
  std::uint64_t channel = 0;
  std::int64_t when = 0;  // on the clock of process 0
  std::int64_t bytes = 0;
};
static_assert(sizeof(MeshFrame) == 40);

void check_frame(const MeshFrame& frame, const std::string& peer);  // throws DeviceError

}  // namespace foreshard
