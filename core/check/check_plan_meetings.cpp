// Checks where ranks synchronise: sends match receives, members of collectives match each other, and a dry run of all roles has no
// deadlock.
#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "core/check/check_plan_rules.h"

namespace foreshard {
namespace {

// A channel: the sends of one role to one relative peer with one tag, and the receives that match them.
struct Channel {
  std::int32_t from = 0, to = 0, shift = 0;  // roles; from the sender's point of view
  std::vector<std::int32_t> axes = {};
  std::string tag = {};
  auto operator<=>(const Channel&) const = default;
};

struct Meeting {  // one communication of one action
  RoleId role = {};
  std::int32_t step = 0;                             // of the role's order
  std::int32_t send = -1, receive = -1, calls = -1;  // channels, and the group call list
  std::int32_t send_number = 0, receive_number = 0, call_number = 0;
  bool arrived = false;
};

class Meetings {
 public:
  // Of the first `runs` runs of the orders.
  Meetings(const Plan& plan, const std::vector<CheckOrder>& orders, std::size_t runs, Defects& defects)
      : plan_(plan), orders_(orders), runs_(runs), defects_(defects) {}

  void check() {
    for (std::size_t r = 0; r < plan_.roles.size(); ++r) collect({static_cast<std::int32_t>(r)});
    const bool sound = check_groups() && !bad_peer_;
    if (!match_exchanges() || !match_calls() || !sound) return;  // a dry run would only report the same again
    dry_run();
  }

  CheckedMeetings matched() {
    for (std::size_t r = 0; r < plan_.roles.size(); ++r) collect({static_cast<std::int32_t>(r)});
    const auto meeting = [&](std::int32_t number) -> const Meeting& { return meetings_[static_cast<std::size_t>(number)]; };
    CheckedMeetings all;
    for (std::size_t c = 0; c < sends_.size(); ++c)
      for (std::size_t k = 0; k < std::min(sends_[c].size(), receives_[c].size()); ++k) {
        const Meeting &send = meeting(sends_[c][k]), &receive = meeting(receives_[c][k]);
        all.exchanges.push_back({send.role, receive.role, send.step, receive.step});
      }
    for (const auto& [key, list] : groups_)
      for (const std::vector<std::int32_t>& of_role : calls_[static_cast<std::size_t>(list)])
        for (const std::int32_t m : of_role)
          all.calls.push_back({{key.first}, meeting(m).role, meeting(m).step, meeting(m).call_number});
    return all;
  }

 private:
  struct Template {  // a communication of a segment, as one role runs it
    std::int32_t instruction = 0, send = -1, receive = -1, calls = -1;
  };

  const Instruction& instruction(const Meeting& m) const {
    const CheckStep& step = orders_[m.role.index()].step(m.step);
    const SegmentId segment = plan_.roles[m.role.index()].actions[static_cast<std::size_t>(step.action)].segment;
    return plan_.segments[segment.index()].instructions[static_cast<std::size_t>(step.instruction)];
  }
  void tell(const char* rule, const Meeting& m, std::string what) {
    const CheckStep& step = orders_[m.role.index()].step(m.step);
    defects_.add(rule, m.role, step.action, step.instruction, std::move(what));
  }
  std::string at(const Meeting& m) const {
    const Role& role = plan_.roles[m.role.index()];
    return "role " + std::to_string(m.role.value) + (role.name.empty() ? "" : " (" + role.name + ")") + ", action " +
           std::to_string(orders_[m.role.index()].step(m.step).action);
  }

  std::vector<std::int32_t> wide_axes(RoleId role) const {  // the axes of the role with more than one coordinate
    std::vector<std::int32_t> axes;
    for (const AxisId axis : plan_.roles[role.index()].axes)
      if (plan_.axes[axis.index()].size > 1) axes.push_back(axis.value);
    std::sort(axes.begin(), axes.end());
    return axes;
  }

  // Every rank of `role` has this peer only if both roles have the same axes.
  std::int32_t channel(RoleId role, const Peer& peer, const std::string& tag, bool sends) {
    const std::int64_t other = std::int64_t{role.value} + peer.role_shift;
    if (other < 0 || other >= static_cast<std::int64_t>(plan_.roles.size())) return -1;
    const RoleId there{static_cast<std::int32_t>(other)};
    if (wide_axes(role) != wide_axes(there)) return -1;
    Channel c{.from = role.value, .to = there.value, .tag = tag};
    if (!sends) std::swap(c.from, c.to);
    int size = 1;
    for (const AxisId axis : peer.axes) size *= plan_.axes[axis.index()].size;
    c.shift = (((sends ? peer.shift : -peer.shift) % size) + size) % size;
    if (c.shift != 0) {
      const std::vector<std::int32_t> axes = wide_axes(role);
      for (const AxisId axis : peer.axes) {
        if (!std::binary_search(axes.begin(), axes.end(), axis.value)) return -1;
        c.axes.push_back(axis.value);
      }
    }
    const auto [entry, fresh] = channels_.try_emplace(c, static_cast<std::int32_t>(sends_.size()));
    if (fresh) sends_.emplace_back(), receives_.emplace_back();
    return entry->second;
  }

  // In groups of one role, members agree by symmetry. Calls of groups of several roles are compared in one list per role.
  std::int32_t calls(RoleId role, GroupId group) {
    const std::pair<std::int32_t, std::int32_t> key{group.value, plan_.groups[group.index()].roles.empty() ? role.value : -1};
    const auto [entry, fresh] = groups_.try_emplace(key, static_cast<std::int32_t>(calls_.size()));
    if (fresh) calls_.emplace_back(plan_.roles.size());
    return entry->second;
  }

  std::vector<Template> templates(RoleId role, const Segment& segment, std::int32_t action) {
    std::vector<Template> list;
    for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
      const Instruction& instruction = segment.instructions[i];
      Template t{.instruction = static_cast<std::int32_t>(i)};
      if (const auto* exchange = std::get_if<Exchange>(&instruction.what)) {
        if (exchange->to) t.send = channel(role, *exchange->to, exchange->tag, true);
        if (exchange->from) t.receive = channel(role, *exchange->from, exchange->tag, false);
        if ((exchange->to && t.send < 0) || (exchange->from && t.receive < 0)) {
          bad_peer_ = true;
          defects_.add("peer-missing", role, action, t.instruction, "some rank of the role has no such peer");
        }
      } else if (const auto* collective = std::get_if<Collective>(&instruction.what)) {
        const std::vector<RoleId>& roles = plan_.groups[collective->group.index()].roles;
        if (!roles.empty() && std::find(roles.begin(), roles.end(), role) == roles.end()) {
          bad_peer_ = true;
          defects_.add("group-without-role", role, action, t.instruction,
                       "calls group \"" + plan_.groups[collective->group.index()].name + "\", which does not list the role");
        }
        t.calls = calls(role, collective->group);
        for (const std::int32_t server : collective->served_by)
          if (server >= members_of(role, collective->group))
            defects_.add("server-missing", role, action, t.instruction,
                         "member " + std::to_string(server) + " serves, the group has " +
                             std::to_string(members_of(role, collective->group)) + " members");
      }
      check_operands(role, action, instruction, t.instruction);
      if (t.send >= 0 || t.receive >= 0 || t.calls >= 0) list.push_back(t);
    }
    return list;
  }

  void check_operands(RoleId role, std::int32_t action, const Instruction& instruction, std::int32_t index) {
    const auto need = [&](const std::vector<Use>& uses, Bytes bytes, const char* what) {
      if (uses.empty()) return defects_.add("operand-missing", role, action, index, std::string(what) + " nothing");
      const Bytes length = length_of(role, uses[0]);
      if (length < bytes)
        defects_.add("operand-missing", role, action, index,
                     std::string(what) + " " + std::to_string(length.value) + " bytes, moves " + std::to_string(bytes.value));
    };
    if (const auto* exchange = std::get_if<Exchange>(&instruction.what)) {
      const Bytes bytes = exchange->bytes * (exchange->slice.valid() ? members_of(role, exchange->slice) : 1);
      if (exchange->to) need(instruction.reads, bytes, "sends from");
      if (exchange->from) need(instruction.writes, bytes, "receives into");
    } else if (const auto* copy = std::get_if<Copy>(&instruction.what)) {
      // With a slice, one of the blocks holds the slices of all ranks of the group, one after the other.
      const std::int64_t slices = copy->slice.valid() ? members_of(role, copy->slice) : 1;
      const auto length = [&](const std::vector<Use>& uses) {
        return !uses.empty() && length_of(role, uses[0]) > copy->bytes ? copy->bytes * slices : copy->bytes;
      };
      need(instruction.reads, length(instruction.reads), "copies from");
      need(instruction.writes, length(instruction.writes), "copies to");
    } else if (const auto* collective = std::get_if<Collective>(&instruction.what)) {
      const bool in_place =
          !instruction.reads.empty() && !instruction.writes.empty() && same_bytes(instruction.reads[0], instruction.writes[0]);
      const Bytes part{collective->bytes.value / members_of(role, collective->group)};
      // With a slice, the operands lie behind those of the ranks that come before this one in that group.
      const std::int64_t slices = collective->slice.valid() ? members_of(role, collective->slice) : 1;
      const Bytes before{collective->bytes.value * (slices - 1)};
      const auto length = [&](CollectiveKind parted) {
        return collective->kind == parted && !in_place ? part : collective->bytes;
      };
      need(instruction.reads, before + length(CollectiveKind::AllGather), "reads");
      need(instruction.writes, before + length(CollectiveKind::ReduceScatter), "writes");
    }
    check_types(role, action, instruction, index);
  }

  // What is moved keeps its number format, and consists of whole numbers.
  void check_types(RoleId role, std::int32_t action, const Instruction& instruction, std::int32_t index) {
    const auto type_of = [&](const Use& use) { return plan_.roles[role.index()].buffers[use.buffer.index()].dtype; };
    const auto tell = [&](std::string what) { defects_.add("operand-type", role, action, index, std::move(what)); };
    const auto* exchange = std::get_if<Exchange>(&instruction.what);
    const auto* collective = std::get_if<Collective>(&instruction.what);
    if (exchange == nullptr && collective == nullptr && !std::holds_alternative<Copy>(instruction.what)) return;
    if (!exchange && !instruction.reads.empty() && !instruction.writes.empty() &&
        type_of(instruction.reads[0]) != type_of(instruction.writes[0]))
      return tell("moves numbers into a block of another number format");
    const std::vector<Use>& uses = instruction.reads.empty() ? instruction.writes : instruction.reads;
    if (uses.empty()) return;
    const std::int64_t each = size_of(type_of(uses[0])).value;
    const Bytes bytes = exchange ? exchange->bytes : collective ? collective->bytes : std::get<Copy>(instruction.what).bytes;
    if (bytes.value % each != 0)
      return tell("moves " + std::to_string(bytes.value) + " bytes of numbers of " + std::to_string(each));
  }

  Bytes length_of(RoleId role, const Use& use) const {
    return use.length ? *use.length : plan_.roles[role.index()].buffers[use.buffer.index()].bytes - use.from;
  }
  static bool same_bytes(const Use& a, const Use& b) { return a.buffer == b.buffer && a.slot == b.slot && a.from == b.from; }
  // The number of ranks in an instance of the group that has a rank of `role`.
  std::int64_t members_of(RoleId role, GroupId group) const {
    const Group& g = plan_.groups[group.index()];
    const auto coordinates = [&](RoleId r) {
      const std::vector<AxisId>& axes = plan_.roles[r.index()].axes;
      std::int64_t ranks = 1;
      for (const AxisId axis : g.over)
        if (std::find(axes.begin(), axes.end(), axis) != axes.end()) ranks *= plan_.axes[axis.index()].size;
      return ranks;
    };
    if (g.roles.empty()) return coordinates(role);
    std::int64_t all = 0;
    for (const RoleId r : g.roles) all += coordinates(r);
    return all;
  }

  void collect(RoleId role) {
    std::vector<std::vector<Template>> of_segment(plan_.segments.size());
    std::vector<char> known(plan_.segments.size(), 0);
    const std::vector<Action>& actions = plan_.roles[role.index()].actions;
    of_role_.emplace_back();
    for (std::size_t a = 0; a < actions.size(); ++a) {
      const SegmentId segment = actions[a].segment;
      if (std::exchange(known[segment.index()], 1)) continue;
      of_segment[segment.index()] = templates(role, plan_.segments[segment.index()], static_cast<std::int32_t>(a));
    }
    for (std::int32_t first = 0; first < steps(role.index());) {  // of an action
      const SegmentId segment = actions[static_cast<std::size_t>(orders_[role.index()].step(first).action)].segment;
      for (const Template& t : of_segment[segment.index()]) add(role, first + t.instruction, t);
      first += static_cast<std::int32_t>(plan_.segments[segment.index()].instructions.size());
    }
  }
  int steps(std::size_t role) const { return orders_[role].ends()[runs_ - 1]; }

  void add(RoleId role, std::int32_t step, const Template& t) {
    Meeting m{.role = role, .step = step, .send = t.send, .receive = t.receive, .calls = t.calls};
    const auto enlist = [&](std::vector<std::int32_t>& list) {
      list.push_back(static_cast<std::int32_t>(meetings_.size()));
      return static_cast<std::int32_t>(list.size()) - 1;
    };
    if (t.send >= 0) m.send_number = enlist(sends_[static_cast<std::size_t>(t.send)]);
    if (t.receive >= 0) m.receive_number = enlist(receives_[static_cast<std::size_t>(t.receive)]);
    if (t.calls >= 0) m.call_number = enlist(calls_[static_cast<std::size_t>(t.calls)][role.index()]);
    of_role_.back().push_back(static_cast<std::int32_t>(meetings_.size()));
    meetings_.push_back(m);
  }

  bool check_groups() {
    bool sound = true;
    for (const Group& group : plan_.groups) {
      std::vector<std::int32_t> outside;
      for (std::size_t r = 0; r < group.roles.size(); ++r) {
        std::vector<std::int32_t> here = wide_axes(group.roles[r]);
        std::erase_if(here, [&](std::int32_t a) {
          return std::find(group.over.begin(), group.over.end(), AxisId{a}) != group.over.end();
        });
        if (r == 0) outside = here;
        if (here == outside) continue;
        sound = false;
        defects_.add("group-asymmetric", "group \"" + group.name + "\"",
                     "its roles differ in axes outside the group, so one instance would share ranks with another");
        break;
      }
    }
    return sound;
  }

  bool match_exchanges() {
    bool sound = true;
    for (std::size_t c = 0; c < sends_.size(); ++c) {
      const std::vector<std::int32_t>&out = sends_[c], &in = receives_[c];
      for (std::size_t k = 0; k < std::max(out.size(), in.size()); ++k) {
        const Meeting& here = meetings_[static_cast<std::size_t>(k < out.size() ? out[k] : in[k])];
        if (k >= out.size() || k >= in.size()) {
          sound = false;
          tell("exchange-mismatch", here,
               std::string(k < out.size() ? "a send" : "a receive") + " without its other side: " + std::to_string(out.size()) +
                   " sends and " + std::to_string(in.size()) + " receives");
          break;
        }
        const Meeting& there = meetings_[static_cast<std::size_t>(in[k])];
        const Bytes sent = std::get<Exchange>(instruction(here).what).bytes,
                    taken = std::get<Exchange>(instruction(there).what).bytes;
        if (sent == taken) continue;
        sound = false;
        tell("exchange-mismatch", here,
             "sends " + std::to_string(sent.value) + " bytes, " + at(there) + " receives " + std::to_string(taken.value));
        break;
      }
    }
    return sound;
  }

  bool match_calls() {
    bool sound = true;
    for (const auto& [key, list] : groups_) {
      const auto& by_role = calls_[static_cast<std::size_t>(list)];
      const Group& group = plan_.groups[static_cast<std::size_t>(key.first)];
      if (group.roles.empty()) continue;
      const auto& reference = by_role[group.roles[0].index()];
      for (const RoleId role : group.roles) sound = match(group, reference, by_role[role.index()]) && sound;
    }
    return sound;
  }
  bool match(const Group& group, const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
    for (std::size_t k = 0; k < std::max(a.size(), b.size()); ++k) {
      const Meeting& there = meetings_[static_cast<std::size_t>(k < a.size() ? a[k] : b[k])];
      if (k >= a.size() || k >= b.size()) {
        tell("collective-mismatch", there,
             "call " + std::to_string(k) + " of group \"" + group.name + "\" has no counterpart in another role");
        return false;
      }
      const Meeting& here = meetings_[static_cast<std::size_t>(b[k])];
      if (std::get<Collective>(instruction(here).what) == std::get<Collective>(instruction(there).what) &&
          same_tensors(here, there))
        continue;
      tell("collective-mismatch", here,
           "call " + std::to_string(k) + " of group \"" + group.name + "\" differs from that of " + at(there));
      return false;
    }
    return true;
  }
  // Two roles that reduce shards together have to reduce shards of the same tensors.
  bool same_tensors(const Meeting& a, const Meeting& b) const {
    const auto tensors = [&](const Meeting& m) {
      std::vector<std::int32_t> all;
      for (const Use& use : instruction(m).reads) {
        const std::vector<Shard>& holds = plan_.roles[m.role.index()].buffers[use.buffer.index()].holds;
        if (holds.size() != 1) return std::vector<std::int32_t>{-1};  // a bucket of several tensors: not compared
        all.push_back(holds[0].tensor.value);
      }
      return all;
    };
    const std::vector<std::int32_t> of_a = tensors(a), of_b = tensors(b);
    return of_a == of_b || of_a == std::vector<std::int32_t>{-1} || of_b == std::vector<std::int32_t>{-1};
  }

  bool met(const Meeting& m) const {
    const auto arrived = [&](std::int32_t i) { return meetings_[static_cast<std::size_t>(i)].arrived; };
    if (m.send >= 0 && !arrived(receives_[static_cast<std::size_t>(m.send)][static_cast<std::size_t>(m.send_number)]))
      return false;
    if (m.receive >= 0 && !arrived(sends_[static_cast<std::size_t>(m.receive)][static_cast<std::size_t>(m.receive_number)]))
      return false;
    if (m.calls < 0) return true;
    for (const auto& of_role : calls_[static_cast<std::size_t>(m.calls)])
      if (!of_role.empty() && !arrived(of_role[static_cast<std::size_t>(m.call_number)])) return false;
    return true;
  }

  void dry_run();

  const Plan& plan_;
  const std::vector<CheckOrder>& orders_;
  std::size_t runs_;
  Defects& defects_;
  bool bad_peer_ = false;
  std::map<Channel, std::int32_t> channels_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> groups_;
  std::vector<std::vector<std::int32_t>> sends_, receives_;    // [channel]: meetings in issue order
  std::vector<std::vector<std::vector<std::int32_t>>> calls_;  // [call list][role]: meetings in issue order
  std::vector<std::vector<std::int32_t>> of_role_;             // [role]: meetings in issue order
  std::vector<Meeting> meetings_;
};

// The streams of one role in the dry run, with the meeting of each step that is one.
struct DryRole {
  std::vector<std::vector<std::int32_t>> steps = {};  // [stream]
  std::vector<std::int32_t> ended = {};               // [stream]
  std::vector<std::int32_t> meeting = {};             // [step], -1: none
  bool queued = true;
};

// The dry run is confluent: a stream that can continue stays able to continue. So every order of execution stops at the same place.
void Meetings::dry_run() {
  std::vector<DryRole> roles(orders_.size());
  std::deque<std::size_t> queue;
  for (std::size_t r = 0; r < roles.size(); ++r) {
    const int all = steps(r);
    roles[r].steps.resize(static_cast<std::size_t>(orders_[r].streams()));
    roles[r].ended.assign(roles[r].steps.size(), 0);
    roles[r].meeting.assign(static_cast<std::size_t>(all), -1);
    for (int s = 0; s < all; ++s) roles[r].steps[static_cast<std::size_t>(orders_[r].stream(s))].push_back(s);
    for (const std::int32_t m : of_role_[r])
      roles[r].meeting[static_cast<std::size_t>(meetings_[static_cast<std::size_t>(m)].step)] = m;
    queue.push_back(r);
  }
  const auto wake = [&](std::int32_t meeting) {
    const std::size_t r = meetings_[static_cast<std::size_t>(meeting)].role.index();
    if (!std::exchange(roles[r].queued, true)) queue.push_back(r);
  };
  const auto arrive = [&](Meeting& m) {
    if (std::exchange(m.arrived, true)) return;
    if (m.send >= 0) wake(receives_[static_cast<std::size_t>(m.send)][static_cast<std::size_t>(m.send_number)]);
    if (m.receive >= 0) wake(sends_[static_cast<std::size_t>(m.receive)][static_cast<std::size_t>(m.receive_number)]);
    if (m.calls >= 0)
      for (const auto& of_role : calls_[static_cast<std::size_t>(m.calls)])
        if (!of_role.empty()) wake(of_role[static_cast<std::size_t>(m.call_number)]);
  };
  const auto head_goes_on = [&](std::size_t r, std::size_t stream) {
    DryRole& role = roles[r];
    const auto done = static_cast<std::size_t>(role.ended[stream]);
    if (done == role.steps[stream].size()) return false;
    const std::int32_t step = role.steps[stream][done];
    const std::int32_t* needs = orders_[r].ended_before(step);
    for (std::size_t s = 0; s < role.ended.size(); ++s)
      if (needs[s] > role.ended[s]) return false;
    const std::int32_t meeting = role.meeting[static_cast<std::size_t>(step)];
    if (meeting >= 0) {
      arrive(meetings_[static_cast<std::size_t>(meeting)]);
      if (!met(meetings_[static_cast<std::size_t>(meeting)])) return false;
    }
    ++role.ended[stream];
    return true;
  };
  while (!queue.empty()) {
    const std::size_t r = queue.front();
    queue.pop_front();
    roles[r].queued = false;
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t stream = 0; stream < roles[r].steps.size(); ++stream)
        while (head_goes_on(r, stream)) progress = true;
    }
  }
  for (const Meeting& m : meetings_)
    if (m.arrived && !met(m)) tell("deadlock", m, "waits for ever: its other side cannot get there");
}

}  // namespace

CheckedMeetings checked_meetings(const Plan& plan) {
  std::vector<CheckOrder> orders;
  for (std::size_t r = 0; r < plan.roles.size(); ++r) orders.emplace_back(plan, RoleId{static_cast<std::int32_t>(r)}, 1);
  Defects defects(plan, 0);
  return Meetings(plan, orders, 1, defects).matched();
}

void check_meetings(const Plan& plan, const std::vector<CheckOrder>& orders, Defects& defects) {
  // Overlapping runs have to come to an end wherever the next run is only begun, in the middle and at the end.
  const std::size_t most = runs_overlap(plan) ? 3 : 1;
  for (std::size_t runs = 1; runs <= most && !defects.full(); ++runs) Meetings(plan, orders, runs, defects).check();
}

}  // namespace foreshard
