#include "exec/mesh/greeting_reader.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/error.h"

namespace foreshard {

namespace {

constexpr std::chrono::seconds kGreeting{10};  // on a busy machine, a process may be suspended between two sends
constexpr std::size_t kMostGuests = 256;       // if there are more, the one that has waited longest is disconnected

}  // namespace

GreetingReader::Visitor GreetingReader::next(Deadline until, const std::vector<const Socket*>& companions) {
  while (true) {
    const auto ready =
        std::find_if(guests_.begin(), guests_.end(), [](const PendingConnection& guest) { return !guest.text.empty(); });
    if (ready != guests_.end()) {
      PendingConnection guest = std::move(*ready);
      guests_.erase(ready);
      try {
        return {std::move(guest.socket), hello_of(guest.text, guest.socket.peer())};
      } catch (const DeviceError&) {  // a stranger
        continue;
      }
    }
    listen(until, companions);
  }
}

void GreetingReader::listen(Deadline until, const std::vector<const Socket*>& companions) {
  std::vector<pollfd> entries = {{.fd = door_.descriptor(), .events = POLLIN, .revents = 0}};
  Deadline next = until;
  for (const PendingConnection& guest : guests_) {
    entries.push_back({.fd = guest.socket.descriptor(), .events = POLLIN, .revents = 0});
    next = std::min(next, guest.until);
  }
  for (const Socket* companion : companions)
    entries.push_back({.fd = companion->descriptor(), .events = POLLRDHUP, .revents = 0});
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - std::chrono::steady_clock::now()).count() + 1;
  const int ready = ::poll(entries.data(), entries.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000)));
  const Deadline now = std::chrono::steady_clock::now();
  if (now >= until) throw DeviceError("waiting on port " + std::to_string(door_.port()), "nobody came in time");
  for (std::size_t i = 0; i < companions.size() && ready > 0; ++i)
    if (entries[guests_.size() + 1 + i].revents != 0)
      throw DeviceError("waiting on port " + std::to_string(door_.port()),
                        "the connection to " + companions[i]->peer() + " ended");
  for (std::size_t i = guests_.size(); i-- > 0;) {
    const bool speaks = ready > 0 && entries[i + 1].revents != 0;
    if (now >= guests_[i].until || (speaks && !stays(guests_[i])))
      guests_.erase(guests_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (ready <= 0 || (entries[0].revents & POLLIN) == 0) return;
  Socket socket = door_.accept_waiting();
  if (!socket.open()) return;
  if (guests_.size() >= kMostGuests) guests_.pop_front();
  guests_.push_back({.socket = std::move(socket), .until = now + kGreeting});
}

bool GreetingReader::stays(PendingConnection& guest) {
  try {
    std::array<char, 4096> piece;
    while (guest.text.empty()) {
      MeshFrame frame;
      std::size_t wanted = sizeof frame;
      if (guest.heard.size() >= sizeof frame) {
        std::memcpy(&frame, guest.heard.data(), sizeof frame);
        check_frame(frame, guest.socket.peer());
        if (frame.kind != MeshKind::Message || frame.bytes < 1 || frame.bytes > kMostGreeting) return false;
        wanted += static_cast<std::size_t>(frame.bytes);
      }
      if (guest.heard.size() == wanted) {
        guest.text = guest.heard.substr(sizeof frame);
        return true;
      }
      // Reads exactly the greeting and no byte after it: what follows is read by the code that gets the connection.
      const std::size_t got = guest.socket.receive_some(piece.data(), std::min(piece.size(), wanted - guest.heard.size()));
      if (got == 0) return true;
      guest.heard.append(piece.data(), got);
    }
    return true;
  } catch (const DeviceError&) {
    return false;
  }
}

}  // namespace foreshard
