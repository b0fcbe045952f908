#include "exec/mesh/mesh_frame.h"

#include "core/base/error.h"

namespace foreshard {

void check_frame(const MeshFrame& frame, const std::string& peer) {
  const bool known = frame.magic == MeshFrame::kMagic && frame.kind <= MeshKind::Lent;
  const std::int64_t most = frame.kind == MeshKind::Message || frame.kind == MeshKind::Lent ? kMostMessage
                            : frame.kind == MeshKind::Bye                                   ? 0
                                                                                            : kMostWords;
  if (!known || frame.bytes < 0 || frame.bytes > most || frame.when > kMostTime || frame.when < -kMostTime)
    throw DeviceError("receiving from " + peer, "not a process of this version of foreshard run");
}

}  // namespace foreshard
