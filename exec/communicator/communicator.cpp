#include "exec/communicator/communicator.h"

#include "core/base/error.h"
#include "exec/arithmetic/host_reduce.h"

namespace foreshard {

namespace {

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::Reduce;
}

}  // namespace

void check_call(const CollectiveCall& call) {
  const auto n = static_cast<std::int64_t>(call.members.size());
  const std::int64_t bytes = call.what.bytes.value, each = size_of(call.from.dtype).value;
  const bool parts = call.what.kind == CollectiveKind::ReduceScatter || call.what.kind == CollectiveKind::AllGather ||
                     call.what.kind == CollectiveKind::AllToAll;
  if (bytes % (parts ? n * each : each) != 0)
    throw Error("plan", call.where, bytes_text(call.what.bytes),
                "a multiple of " + std::to_string(parts ? n * each : each) + " bytes");
  const bool in_place = call.from.data == call.to.data;
  const std::int64_t part = bytes / n;
  const std::int64_t in = call.what.kind == CollectiveKind::AllGather && !in_place ? part : bytes;
  const std::int64_t out = call.what.kind == CollectiveKind::ReduceScatter && !in_place ? part : bytes;
  if (call.from.bytes.value < in)
    throw Error("plan", call.where, "a block of " + bytes_text(call.from.bytes) + " to read", "at least " + std::to_string(in));
  if (call.to.bytes.value < out)
    throw Error("plan", call.where, "a block of " + bytes_text(call.to.bytes) + " to write", "at least " + std::to_string(out));
  if (call.from.dtype != call.to.dtype)
    throw Error("plan", call.where, std::string(name_of(call.to.dtype)) + " to write", name_of(call.from.dtype));
  if (reduces(call.what.kind) && !can_reduce(call.from.dtype))
    throw Error("plan", call.where, name_of(call.from.dtype), "a floating-point type to sum");
  if (call.what.kind == CollectiveKind::AllToAll && in_place && n > 1)
    throw Error("plan", call.where, "an all-to-all in place", "two blocks");
}

}  // namespace foreshard
