#include "exec/mesh/mesh_inbox.h"

#include <algorithm>
#include <utility>

namespace foreshard {

namespace {

void arrive(MeshReceive& arrival, const MeshMessage& message) {
  const std::size_t size = message.lent != 0 ? message.size : message.bytes.size();
  const bool fits = size == arrival.place.size();
  if (fits) std::copy(message.bytes.begin(), message.bytes.end(), arrival.place.begin());
  arrival.found = size, arrival.when = message.when, arrival.lent = message.lent;
  arrival.state = fits ? MeshReceive::State::Here : MeshReceive::State::Wrong;
}

}  // namespace

std::string sizes(const MeshReceive& arrival) {
  return "a message of " + std::to_string(arrival.found) + " bytes instead of " + std::to_string(arrival.place.size()) +
         " bytes";
}

std::size_t MeshInbox::Hash::operator()(const Channel& channel) const {
  const auto& [from, to, word] = channel;
  return (word ^ (static_cast<std::uint64_t>(from) << 32U) ^ static_cast<std::uint32_t>(to)) * 0x9E3779B97F4A7C15U;
}

bool MeshInbox::put(const Channel& channel, MeshMessage message) {
  if (MeshReceive* arrival = next_place(channel)) {
    arrive(*arrival, message);
    arrival->changed->notify_all();
    return true;
  }
  waiting_ += static_cast<std::int64_t>(message.bytes.size());
  channels_[channel].messages.push_back(std::move(message));
  return false;
}

void MeshInbox::post(const Channel& channel, MeshReceive& arrival) {
  if (const std::optional<MeshMessage> message = next(channel)) return arrive(arrival, *message);
  arrival.state = MeshReceive::State::Posted;
  channels_[channel].places.push_back(&arrival);
}

MeshReceive* MeshInbox::next_place(const Channel& channel) {
  std::deque<MeshReceive*>& places = channels_[channel].places;
  if (places.empty()) return nullptr;
  MeshReceive* arrival = places.front();
  places.pop_front();
  return arrival;
}

std::optional<MeshMessage> MeshInbox::next(const Channel& channel) {
  std::deque<MeshMessage>& messages = channels_[channel].messages;
  if (messages.empty()) return {};
  MeshMessage message = std::move(messages.front());
  messages.pop_front();
  waiting_ -= static_cast<std::int64_t>(message.bytes.size());
  return message;
}

bool MeshInbox::has(const Channel& channel) const {
  const auto found = channels_.find(channel);
  return found != channels_.end() && !found->second.messages.empty();
}

void MeshInbox::wake_all() {
  for (auto& [channel, waiting] : channels_)
    for (MeshReceive* arrival : waiting.places) arrival->changed->notify_all();
}

}  // namespace foreshard
