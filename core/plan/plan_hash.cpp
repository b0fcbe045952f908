// program_hash. Structured bindings name every member of every struct, so that a new member does not compile until it is decided here
// whether it belongs to the program.
#include <bit>
#include <cstring>
#include <type_traits>

#include "core/plan/plan.h"

namespace foreshard {
namespace {

// Two 64-bit lanes of multiply and rotate, joined and avalanched at the end. Lengths and alternatives are mixed in
// before contents, so that different structures with the same leaves differ.
class Mix {
 public:
  void add(std::uint64_t word) {
    a_ = std::rotl(a_ ^ word, 29) * 0x9E3779B97F4A7C15U;
    b_ = (std::rotl(b_, 23) + word) * 0xD6E8FEB86659FD93U + a_;
  }
  template <class T>
  requires(std::is_integral_v<T> || std::is_enum_v<T>) void add(T v) {
    add(static_cast<std::uint64_t>(static_cast<std::int64_t>(v)));
  }
  void add(double v) { add(std::bit_cast<std::uint64_t>(v + 0.0)); }  // -0 and 0 are equal
  void add(const std::string& text) {
    add(std::uint64_t{text.size()});
    for (std::size_t i = 0; i < text.size(); i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data() + i, std::min<std::size_t>(8, text.size() - i));
      add(word);
    }
  }
  template <class T>
  void add(const Id<T>& id) {
    add(id.value);
  }
  void add(const Bytes& v) { add(v.value); }
  void add(const Flops& v) { add(v.value); }
  template <class T>
  void add(const std::vector<T>& list) {
    add(std::uint64_t{list.size()});
    for (const T& item : list) add(item);
  }
  template <class T>
  void add(const std::optional<T>& v) {
    add(std::uint64_t{v.has_value()});
    if (v) add(*v);
  }
  template <class... T>
  void add(const std::variant<T...>& v) {
    add(std::uint64_t{v.index()});
    std::visit([this](const auto& alternative) { this->add(alternative); }, v);
  }
  template <class... T>
  void all(const T&... parts) {
    (add(parts), ...);
  }

  void add(const Axis& v) {
    const auto& [name, dense, expert, size] = v;
    all(name, dense, expert, size);
  }
  void add(const Group& v) {
    const auto& [name, roles, over] = v;
    all(name, roles, over);
  }
  void add(const Peer& v) {
    const auto& [role_shift, axis, shift] = v;
    all(role_shift, axis, shift);
  }
  void add(const Tensor& v) {
    const auto& [name, shape, dtype, init, grid, frozen] = v;
    all(name, shape, dtype, init, grid);
    if (frozen) all(frozen);
  }
  void add(const Shard& v) {
    const auto& [tensor, part, dim, split_by, blocks, block_rows, flat_by, at] = v;
    all(tensor, part, dim, split_by, blocks, flat_by, at);
    if (!block_rows.empty()) all(block_rows);
  }
  void add(const Buffer& v) {
    const auto& [name, category, space, scope, dtype, bytes, offsets, holds, resident] = v;
    all(name, category, space, scope, dtype, bytes, offsets, holds, resident);
  }
  void add(const Slot& v) {
    const auto& [which] = v;
    add(which);
  }
  void add(const Block& v) {
    const auto& [buffer, slot] = v;
    all(buffer, slot);
  }
  void add(const Use& v) {
    const auto& [buffer, slot, from, length] = v;
    all(buffer, slot, from, length);
  }
  void add(const EventUse& v) {
    const auto& [event, slot] = v;
    all(event, slot);
  }
  void add(const Shape& v) {
    const auto& [dims, dtype] = v;
    all(dims, dtype);
  }
  void add(const Operation& v) {
    add(word(v));
    const int first = std::visit([](const auto& op) { return op.kFirstSettings; }, v);
    int at = 0;
    visit_settings(v, [&](const char* name, const auto& value, const auto& usual) {
      const bool later = at++ >= first;
      if (later && value == usual) return;
      if (later) add(std::string(name));
      this->add(value);
    });
  }
  void add(const Compute& v) {
    const auto& [op, phase, shapes, flops, traffic, accumulate, accumulate_weights, microbatch, slice, loss_scale,
                 dynamic_scale] = v;
    all(op, phase, shapes, flops, traffic, accumulate, accumulate_weights, microbatch, slice, loss_scale, dynamic_scale);
  }
  void add(const HostCompute& v) {
    const auto& [op, traffic, shapes, loss_scale] = v;
    all(op, traffic, shapes, loss_scale);
  }
  void add(const Exchange& v) {
    const auto& [to, from, tag, bytes, slice] = v;
    all(to, from, tag, bytes);
    if (slice.valid()) add(slice);
  }
  void add(const Collective& v) {
    const auto& [kind, algorithm, group, bytes, dtype, combine, accumulate, slice, servers, served_by] = v;
    all(kind, algorithm, group, bytes, dtype, combine, accumulate, slice, servers);
    if (!served_by.empty()) all(served_by);
  }
  void add(const Copy& v) {
    const auto& [bytes, slice] = v;
    add(bytes);
    if (slice.valid()) add(slice);
  }
  void add(const Mark&) {}
  void add(const Instruction& v) {
    const auto& [name, what, stream, layer, after, waits, records, reads, writes, acquires, releases] = v;
    all(name, what, stream, layer, after, waits, records, reads, writes, acquires, releases);
  }
  void add(const Param& v) {
    const auto& [name, kind] = v;
    all(name, kind);
  }
  void add(const Segment& v) {
    const auto& [name, params, instructions] = v;
    all(name, params, instructions);
  }
  void add(const Does& v) {
    const auto& [work, stage, microbatch, version] = v;
    all(work, stage, microbatch, version);
  }
  void add(const Action& v) {
    const auto& [segment, args, does] = v;
    all(segment, args, does);
  }
  void add(const Stream& v) {
    const auto& [name, kind] = v;
    all(name, kind);
  }
  void add(const Event& v) {
    const auto& [name, slots] = v;
    all(name, slots);
  }
  void add(const Role& v) {
    const auto& [name, device_kind, axes, streams, events, layers, buffers, actions, ahead] = v;
    all(name, device_kind, axes, streams, events, layers, buffers, actions);
    if (!ahead.empty()) all(ahead);
  }
  void add(const Placement& v) {
    const auto& [order, explicit_devices] = v;
    all(order, explicit_devices);
  }

  std::uint64_t result() const {
    std::uint64_t x = a_ ^ std::rotl(b_, 32);
    for (const std::uint64_t factor : {0xA0761D6478BD642FU, 0xE7037ED1A0B428DBU}) x = (x ^ (x >> 32)) * factor;
    return x ^ (x >> 29);
  }

 private:
  std::uint64_t a_ = 0x243F6A8885A308D3U, b_ = 0x13198A2E03707344U;  // digits of pi
};

}  // namespace

std::string program_hash(const Plan& plan) {
  // costs, framework, reserve and origin are not part of the program
  const auto& [version, origin, samples, updates, stages, microbatches, axes, groups, tensors, segments, roles, placement,
               costs, framework, reserve] = plan;
  Mix mix;
  mix.all(version, samples, updates, stages, microbatches, axes, groups, tensors, segments, roles, placement);
  std::uint64_t value = mix.result();
  std::string text(16, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, value >>= 4) *digit = "0123456789abcdef"[value & 15U];
  return text;
}

}  // namespace foreshard
