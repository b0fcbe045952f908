// Collectives that are carried out in rounds (exec/communicator/round_walk.h), by messages of a ProcessMesh.
#pragma once

#include <memory>

#include "exec/communicator/tcp_meeting.h"

namespace foreshard::tcp {

std::unique_ptr<StreamTask> rounds_task(const CollectiveCall& call, const Wire& wire, std::size_t place);

}  // namespace foreshard::tcp
