#include "strategy/program/chunk_frame.h"

namespace foreshard {

BufferId ChunkFrame::add_buffer(const std::string& name, Category category, DType dtype, Bytes bytes, int slots) const {
  role.buffers.push_back({.name = name + "." + std::to_string(chunk),
                          .category = category,
                          .dtype = dtype,
                          .bytes = bytes,
                          .offsets = std::vector<Bytes>(static_cast<std::size_t>(slots))});
  return {static_cast<std::int32_t>(role.buffers.size()) - 1};
}

EventId ChunkFrame::add_event(const std::string& name, int slots) const {
  role.events.push_back({.name = name + "." + std::to_string(chunk), .slots = slots});
  return {static_cast<std::int32_t>(role.events.size()) - 1};
}

}  // namespace foreshard
