// What comes over the network may be anything: streams drawn and mutated from fixed seeds against the door, against a process that joins, and
// against one that is connected. Whatever comes: no crash, no hang, no memory for bytes that are only promised, and who is no process of the
// run does not disturb it.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <random>

#include "core/base/error.h"
#include "exec/data/checkpoint_share.h"
#include "exec/interpreter/rank_report.h"
#include "exec/mesh/mesh_frame.h"
#include "exec/mesh/mesh_words.h"
#include "tests/exec/processes.h"
#include "tests/how_many.h"

namespace foreshard::mesh_fuzz_test {
namespace {

using namespace std::chrono_literals;

class Noise {
 public:
  explicit Noise(unsigned seed) : random_(seed) {}
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

  std::string bytes(std::size_t count) {
    std::string text(count, ' ');
    for (char& c : text) c = static_cast<char>(random_());
    return text;
  }
  // One to four changes: a bit, a byte that is an edge, a piece left out, doubled or put in.
  std::string mutated(std::string text) {
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
      const std::size_t at = below(text.size() + 1), length = std::min(below(16), text.size() - at);
      switch (below(6)) {
        case 0:
          if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
          break;
        case 1:
          if (at < text.size()) text[at] = "\0\xff\x7f\x80 9-\n"[below(8)];
          break;
        case 2: text.erase(at, length); break;
        case 3: text.insert(at, text.substr(at, length)); break;
        case 4: text.insert(at, bytes(below(8))); break;
        default: text.resize(at); break;
      }
    }
    return text;
  }

 private:
  std::mt19937 random_;
};

std::string framed(MeshFrame frame, const std::string& body) {
  frame.bytes = static_cast<std::int64_t>(body.size());
  std::string text(reinterpret_cast<const char*>(&frame), sizeof frame);
  return text + body;
}

Deadline soon(std::chrono::milliseconds time = 20s) { return std::chrono::steady_clock::now() + time; }

long peak_memory() {  // KiB
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// What a reader makes of a text: a value, or a DeviceError. Anything else ends the test.
template <class Read>
bool reads(const Read& read) {
  try {
    read();
    return true;
  } catch (const DeviceError&) {
    return false;
  }
}

TEST(MeshFuzz, TextsAreReadOrRefused) {
  Noise noise(17);
  const MeshHello hello{.process = 3, .processes = 16, .port = 4711, .job = "00c0ffee00c0ffee", .run = "plan=1\nsteps=2\n"};
  const std::vector<MeshAddress> addresses = {{"", 0}, {"10.0.0.1", 1}, {"fe80::1%eth0", 65535}};
  const std::vector<std::string> texts = {"", "two words", std::string("\0 5 x", 5)};
  RankReport report;
  report.spans.resize(2);
  report.spans[1] = {.ready = 1, .begin = 2, .end = 3, .own = 1, .count = 2};
  const std::string tensor = static_cast<char>(DType::F32) + std::string(12, '\0'),
                    reports = packed_reports({report, report}, 5);
  // What is whole is read as it was.
  EXPECT_EQ(hello_of(text_of(hello), "x"), hello);
  EXPECT_EQ(addresses_of(text_of(addresses), 3, "x"), addresses);
  EXPECT_EQ(unpacked(packed(texts), 3, "x"), texts);
  EXPECT_EQ(shared_elements_of(tensor, 3), std::vector<double>(3, 0.0));
  EXPECT_EQ(reports_of(reports, 2)[1].spans[1].begin, 7);
  EXPECT_EQ(reports_of(reports, 2)[1].spans[1].count, 2);
  int read = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    bool good = false;
    switch (i % 5) {
      case 0:
        good = reads([&] {
          const MeshHello got = hello_of(noise.mutated(text_of(hello)), "x");
          EXPECT_EQ(hello_of(text_of(got), "x"), got);
        });
        break;
      case 1: good = reads([&] { EXPECT_EQ(addresses_of(noise.mutated(text_of(addresses)), 3, "x").size(), 3U); }); break;
      case 2: good = reads([&] { EXPECT_EQ(unpacked(noise.mutated(packed(texts)), 3, "x").size(), 3U); }); break;
      case 3: good = reads([&] { EXPECT_EQ(shared_elements_of(noise.mutated(tensor), 3).size(), 3U); }); break;
      default: good = reads([&] { EXPECT_EQ(reports_of(noise.mutated(reports), 2).size(), 2U); }); break;
    }
    ++(good ? read : refused);
  }
  EXPECT_GT(read, 1000);
  EXPECT_GT(refused, 10'000);
}

// 5 is no format and 200 no DType at all; 7 (I64) is one, but not of a tensor. Elements that are cut or too many; a report that promises 2^60 spans.
TEST(MeshFuzz, LiesAboutSizesAreRefused) {
  for (const char format : {'\5', '\7', static_cast<char>(200)})
    EXPECT_FALSE(reads([&] { shared_elements_of(format + std::string(24, 'x'), 3); })) << int{format};
  EXPECT_FALSE(reads([] { shared_elements_of(static_cast<char>(DType::F32) + std::string(13, 'x'), 3); }));
  EXPECT_FALSE(reads([] { shared_elements_of(static_cast<char>(DType::F32) + std::string(16, 'x'), 3); }));
  EXPECT_FALSE(reads([] { shared_elements_of("", 3); }));
  std::string many(8, '\0');
  many[7] = 0x10;
  EXPECT_FALSE(reads([&] { reports_of(many + std::string(800, '\0'), 1); }));
}

// 300 mutated greetings, none of which knows the job's token, and as much noise; then the second process comes, and the two meet.
TEST(MeshFuzz, TheDoorStaysOpenForWhoBelongs) {
  const int port = free_port();
  const auto own = [&](int process) {
    MeshOptions options = mesh_options(process, 2, 2, port);
    options.job = "00c0ffee00c0ffee", options.run = "plan=1\n";
    return options;
  };
  const long before = peak_memory();
  auto first = std::async(std::launch::async, [&] { ProcessMesh mesh(own(0)); });
  Noise noise(5);
  const std::string greeting = framed({}, text_of({1, 2, 4711, "0000000000000bad", "plan=1\n"}));
  std::vector<Socket> silent;
  for (int i = 0; i < 600; ++i) {
    Socket stranger = Socket::connect("127.0.0.1", port, soon());
    const std::string said = i % 2 == 0 ? noise.mutated(greeting) : noise.bytes(noise.below(300));
    try {
      if (!said.empty()) stranger.send(said.data(), said.size());
    } catch (const DeviceError&) {  // shown out before it had said all
    }
    if (i % 3 == 0) silent.push_back(std::move(stranger));  // stays and says no more
  }
  auto second = std::async(std::launch::async, [&] { ProcessMesh mesh(own(1)); });
  EXPECT_NO_THROW(first.get());
  EXPECT_NO_THROW(second.get());
  EXPECT_LT(peak_memory() - before, 200 << 10);
}

// The other end of a mesh of two, played by hand.
class Stand {
 public:
  explicit Stand(int port) : socket_(Socket::connect("127.0.0.1", port, soon())) {}
  // Joins as process 1; `process`: whose memory may be read, 0: nobody's.
  void join(std::int64_t process) {
    say(framed({}, text_of({1, 2, 4711, "", ""})));
    MeshFrame answer;
    ASSERT_TRUE(socket_.receive(&answer, sizeof answer, soon()));
    std::string text(static_cast<std::size_t>(answer.bytes), ' ');
    ASSERT_TRUE(socket_.receive(text.data(), text.size(), soon()));
    ASSERT_TRUE(text.starts_with("welcome")) << text;
    for (int i = 0; i < 8; ++i) {
      std::int64_t time = i;
      say(std::string(reinterpret_cast<const char*>(&time), sizeof time));
      ASSERT_TRUE(socket_.receive(&time, sizeof time, soon()));
    }
    pass_as_neighbour(socket_, process);
  }
  void leave() { socket_.close(); }
  void say(const std::string& text) {
    try {
      socket_.send(text.data(), text.size());
    } catch (const DeviceError&) {  // it does not listen any more
    }
  }

 private:
  Socket socket_;
};

std::string some_frames(Noise& noise) {
  std::string text;
  for (int i = 0; i < 6; ++i) {
    MeshFrame frame;
    frame.kind = static_cast<MeshKind>(noise.below(3)), frame.from = 1, frame.channel = 7;
    if (noise.below(6) == 0) {  // a message at an address that is none
      frame.kind = MeshKind::Lent, frame.bytes = 100;
      text += std::string(reinterpret_cast<const char*>(&frame), sizeof frame) + noise.bytes(8);
      continue;
    }
    if (frame.kind == MeshKind::Failed && i < 5) frame.kind = MeshKind::Beat;
    text += framed(frame, noise.bytes(frame.kind == MeshKind::Message && i % 2 == 0 ? 100 : noise.below(300)));
  }
  return text;
}

TEST(MeshFuzz, ABrokenPeerStopsTheRunAndNothingElse) {
  const long before = peak_memory();
  int failed = 0, got = 0;
  for (unsigned seed = 0; seed < how_many(40U, 150U); ++seed) {
    const int port = free_port();
    auto first = std::async(std::launch::async, [&] {
      MeshOptions own = mesh_options(0, 2, 2, port);
      ProcessMesh mesh(own);
      Stop stop;
      mesh.guard(&stop);
      std::vector<std::byte> place(100);
      std::condition_variable changed;
      MeshReceive arrival{.place = place, .changed = &changed};
      MeshWatch watch(mesh, std::array{RankId{1}});
      try {
        for (int i = 0; i < 3; ++i) {
          mesh.post({1}, {0}, 7, arrival);
          mesh.await({1}, arrival, stop, watch);
          ++got;
        }
        static_cast<void>(mesh.all_gather("x"));
      } catch (const Stopped&) {
        EXPECT_FALSE(stop.why().empty());
        ++failed;
      } catch (const DeviceError& error) {
        EXPECT_NE(std::string(error.what()), "");
        ++failed;
      }
      watch.end();
      mesh.forget({1}, {0}, 7, arrival);
      mesh.guard(nullptr);
    });
    Noise noise(seed);
    Stand stand(port);
    stand.join(seed % 4 == 1 ? ::getpid() : 0);
    const std::string frames = some_frames(noise);
    stand.say(seed % 3 == 0 ? noise.bytes(500) : noise.mutated(noise.mutated(frames)));
    if (seed % 2 == 0) {  // a promise of a tebibyte
      MeshFrame frame{.from = 1, .channel = 9, .bytes = kMostMessage};
      stand.say(std::string(reinterpret_cast<const char*>(&frame), sizeof frame) + "few");
    }
    stand.leave();
    ASSERT_EQ(first.wait_for(30s), std::future_status::ready) << "seed " << seed;
    first.get();
  }
  EXPECT_EQ(failed, how_many(40, 150));
  EXPECT_GT(got, how_many(3, 10));
  EXPECT_LT(peak_memory() - before, 300 << 10);
}

// A process that joins, and finds anything at MASTER_ADDR.
TEST(MeshFuzz, WhateverAnswersAJoiningProcess) {
  const std::string answer =
      framed({}, "welcome\n" + text_of(std::vector<MeshAddress>{{"", 0}, {"127.0.0.1", 4711}, {"127.0.0.1", 4712}}));
  for (unsigned seed = 0; seed < 60; ++seed) {
    ListeningSocket door("127.0.0.1", 0);
    auto joins = std::async(std::launch::async, [&] {
      MeshOptions own = mesh_options(1, 3, 3, door.port());
      own.rendezvous = 3s;
      return reads([&] { ProcessMesh mesh(own); });
    });
    Socket socket;
    while (!socket.open()) socket = door.accept_waiting();
    Noise noise(seed);
    const std::string said = seed % 4 == 0 ? noise.bytes(200) : noise.mutated(answer);
    socket.send(said.data(), said.size());
    socket.close();
    ASSERT_EQ(joins.wait_for(30s), std::future_status::ready) << "seed " << seed;
    EXPECT_FALSE(joins.get()) << seed;
  }
}

}  // namespace
}  // namespace foreshard::mesh_fuzz_test
