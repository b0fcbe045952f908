#include "exec/mesh/mesh_words.h"

#include <charconv>
#include <sstream>

#include "core/base/error.h"

namespace foreshard {

namespace {

constexpr int kMostPort = 65535;

// Takes words and numbers off the front of a text.
class Words {
 public:
  Words(std::string_view text, std::string peer) : text_(text), peer_(std::move(peer)) {}

  std::int64_t number(char border, std::int64_t least, std::int64_t most) {
    const std::string_view digits = word(border);
    std::int64_t value = 0;
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (problem != std::errc() || end != digits.data() + digits.size() || value < least || value > most) refuse();
    return value;
  }
  std::string_view word(char border) {
    const std::size_t end = text_.find(border);
    if (end == std::string_view::npos) refuse();
    const std::string_view found = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return found;
  }
  std::string_view take(std::size_t bytes) {
    if (bytes > text_.size()) refuse();
    const std::string_view found = text_.substr(0, bytes);
    text_.remove_prefix(bytes);
    return found;
  }
  std::string_view rest() const { return text_; }
  [[noreturn]] void refuse() const { throw DeviceError("receiving from " + peer_, "not a process of foreshard run"); }

 private:
  std::string_view text_;
  std::string peer_;
};

}  // namespace

std::string text_of(const MeshHello& hello) {
  return std::to_string(hello.process) + " " + std::to_string(hello.processes) + " " + std::to_string(hello.port) + " " +
         hello.job + "\n" + hello.run;
}

MeshHello hello_of(const std::string& text, const std::string& peer) {
  Words words(text, peer);
  MeshHello hello;
  hello.process = static_cast<int>(words.number(' ', 0, INT32_MAX));
  hello.processes = static_cast<int>(words.number(' ', 0, INT32_MAX));
  hello.port = static_cast<int>(words.number(' ', 0, kMostPort));
  hello.job = words.word('\n');
  hello.run = words.rest();
  return hello;
}

std::string text_of(const std::vector<MeshAddress>& addresses) {
  std::string text;
  for (std::size_t p = 1; p < addresses.size(); ++p)
    text += addresses[p].first + " " + std::to_string(addresses[p].second) + "\n";
  return text;
}

std::vector<MeshAddress> addresses_of(const std::string& text, std::size_t processes, const std::string& peer) {
  Words words(text, peer);
  std::vector<MeshAddress> addresses(1);
  while (addresses.size() < processes) {
    const std::string host(words.word(' '));
    addresses.emplace_back(host, static_cast<int>(words.number('\n', 1, kMostPort)));
  }
  if (!words.rest().empty()) words.refuse();
  return addresses;
}

std::string packed(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += std::to_string(text.size()) + " " + text;
  return all;
}

std::vector<std::string> unpacked(std::string_view text, std::size_t count, const std::string& peer) {
  Words words(text, peer);
  std::vector<std::string> texts;
  while (texts.size() < count) {
    const auto bytes = static_cast<std::size_t>(words.number(' ', 0, static_cast<std::int64_t>(text.size())));
    texts.emplace_back(words.take(bytes));
  }
  if (!words.rest().empty()) words.refuse();
  return texts;
}

std::pair<std::string, std::string> first_difference(const std::string& own, const std::string& other) {
  std::istringstream a(own), b(other);
  while (true) {
    std::string left, right;
    const bool more_a = static_cast<bool>(std::getline(a, left)), more_b = static_cast<bool>(std::getline(b, right));
    if (!more_a && !more_b) return {};
    if (left != right) return {left, right};
  }
}

}  // namespace foreshard
