// What processes of a run say to each other in words: greetings, lists of texts, reasons. Whatever comes from outside is checked here before
// anything is made of it; all readers throw DeviceError naming the peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foreshard {

// The first words of a connection.
struct MeshHello {
  int process = 0, processes = 0;
  int port = 0;          // where it listens itself; 0: nowhere
  std::string job = {};  // its token, hashed; letters and digits
  std::string run = {};  // lines "name=value" that have to be the same everywhere
  bool operator==(const MeshHello&) const = default;
};
std::string text_of(const MeshHello& hello);
MeshHello hello_of(const std::string& text, const std::string& peer);

using MeshAddress = std::pair<std::string, int>;                 // host, port
std::string text_of(const std::vector<MeshAddress>& addresses);  // without the first, which all know
std::vector<MeshAddress> addresses_of(const std::string& text, std::size_t processes, const std::string& peer);

// One text of many, each with its length before it.
std::string packed(const std::vector<std::string>& texts);
std::vector<std::string> unpacked(std::string_view text, std::size_t count, const std::string& peer);

// The most bytes of a text from another process that are printed (core/base/printable.h).
inline constexpr std::size_t kMostPrinted = 2000;

// The first line of `own` that `other` does not have in its place: (own, other).
std::pair<std::string, std::string> first_difference(const std::string& own, const std::string& other);

}  // namespace foreshard
