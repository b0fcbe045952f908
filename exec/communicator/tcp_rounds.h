// Collectives in rounds (exec/communicator/round_walk.h) with messages of a ProcessMesh.
#pragma once

#include <memory>

#include "exec/communicator/tcp_meeting.h"

namespace foreshard::tcp {

// `place`: position of this rank in call.members.
std::unique_ptr<StreamTask> rounds_task(const CollectiveCall& call, const RankSender& wire, std::size_t place);

}  // namespace foreshard::tcp
