// Encoding of the text messages between the processes of a run: greetings, address lists, lists of texts. The functions that decode check
// all that they read, because it comes from the network. They throw DeviceError, naming `peer`, for invalid input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foreshard {

// The first message of a connection: who connects.
struct MeshHello {
  int process = 0, processes = 0;
  int port = 0;          // where the process itself listens; 0: nowhere
  std::string job = {};  // MeshOptions::job
  std::string run = {};  // MeshOptions::run
  bool operator==(const MeshHello&) const = default;
};
std::string text_of(const MeshHello& hello);
MeshHello hello_of(const std::string& text, const std::string& peer);

using MeshAddress = std::pair<std::string, int>;                 // host, port
std::string text_of(const std::vector<MeshAddress>& addresses);  // leaves out that of process 0, which all know
// [process]: `processes` addresses, the first of them empty.
std::vector<MeshAddress> addresses_of(const std::string& text, std::size_t processes, const std::string& peer);

// Packs several texts into one, each preceded by its length. `unpacked` is the inverse; it throws unless there are `count` texts.
std::string packed(const std::vector<std::string>& texts);
std::vector<std::string> unpacked(std::string_view text, std::size_t count, const std::string& peer);

// A longer text from another process is cut to this number of bytes when it is printed (core/base/printable.h).
inline constexpr std::size_t kMostPrinted = 2000;

// The first line in which two texts differ: the line of `own` and that of `other`. Both are empty if the texts are equal.
std::pair<std::string, std::string> first_difference(const std::string& own, const std::string& other);

}  // namespace foreshard
