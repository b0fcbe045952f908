#include <algorithm>
#include <random>

#include "core/base/words.h"
#include "tests/core/support_plan.h"

namespace foreshard {
namespace {

class RandomPlan {
 public:
  explicit RandomPlan(std::uint32_t seed) : random_(seed) {}

  Plan plan() {
    Plan p;
    p.origin = pick(2) ? text() : "", p.updates = 1 + pick(3), p.stages = 1 + pick(4), p.microbatches = 1 + pick(5),
    p.samples = p.microbatches + pick(1000);
    p.framework = bytes(), p.reserve = bytes();
    for (int a = 0, n = pick(4); a < n; ++a)
      p.axes.push_back({text() + "axis", one<DenseKind>(kDenseKinds), one<ExpertKind>(3), 1 + pick(3)});
    const int roles = pick(4), tensors = pick(4);
    for (int g = 0, n = pick(3); g < n; ++g) p.groups.push_back({text(), some<RoleId>(roles), some<AxisId>(size(p.axes))});
    for (int t = 0; t < tensors; ++t)
      p.tensors.push_back({text(), {1 + pick(9), 1 + pick(9)}, one<DType>(9), pick(2) ? "zeros" : "", one<Grid>(2)});
    shapes_ = {.streams = 1 + pick(3), .events = pick(3), .buffers = pick(4), .slots = 1 + pick(3), .layers = pick(3)};
    for (int s = 0, n = pick(4); s < n; ++s) p.segments.push_back(segment(p));
    for (int r = 0; r < roles; ++r) p.roles.push_back(role(p));
    if (pick(2)) p.placement.order = order(p.axes);
    if (pick(2) && roles > 0) p.placement.explicit_devices = {{pick(5)}};
    if (pick(2)) p.costs.push_back(costs(p));
    return p;
  }

 private:
  struct Sizes {  // equal in all roles, so that every segment suits every role
    int streams = 1, events = 0, buffers = 0, slots = 1, layers = 0;
  };

  int pick(int n) { return n <= 0 ? 0 : static_cast<int>(random_() % static_cast<unsigned>(n)); }
  template <class T>
  static int size(const std::vector<T>& list) {
    return static_cast<int>(list.size());
  }
  template <class Enum>
  Enum one(int count) {
    return static_cast<Enum>(pick(count));
  }
  template <class IdType>
  std::vector<IdType> some(int count) {
    std::vector<IdType> ids;
    for (int i = 0; i < count; ++i)
      if (pick(2)) ids.push_back({i});
    return ids;
  }
  std::vector<AxisId> order(const std::vector<Axis>& axes) {
    std::vector<AxisId> all = {Placement::kRole};
    for (int a = 0; a < size(axes); ++a) all.push_back({a});
    std::shuffle(all.begin(), all.end(), random_);
    return all;
  }
  Bytes bytes() { return {pick(3) ? pick(4096) : std::int64_t{pick(1 << 30)} * 1000}; }
  std::string text() {
    static const std::vector<std::string> texts = {"",           "plain",         "with \"quotes\" and \\", "tab\tline\nend",
                                                   "größe µ 漢", "a // b /* c */"};
    return texts[static_cast<std::size_t>(pick(size(texts)))];
  }

  GroupId slice(const Plan& p) { return p.groups.empty() || pick(2) ? GroupId{} : GroupId{pick(size(p.groups))}; }

  // Any operator, with any settings.
  Operation operation() {
    Operation any = operation_of(static_cast<std::size_t>(pick(static_cast<int>(operation_words().size()))));
    std::visit(
        [&](auto& op) {
          op.fields(op, [&]<class T>(const char*, T& setting) {
            if (pick(2)) return;
            if constexpr (std::is_same_v<T, bool>)
              setting = pick(2) == 1;
            else if constexpr (std::is_enum_v<T>)
              setting = static_cast<T>(pick(size(words<T>())));
            else if constexpr (std::is_integral_v<T>)
              setting = static_cast<T>(pick(1000));
            else
              setting = 0.1 * pick(1000);
          });
        },
        any);
    return any;
  }

  Slot slot(const Segment& segment) {
    if (!segment.params.empty() && pick(2)) return {ParamId{0}};  // parameter 0 is a slot
    return {pick(shapes_.slots)};
  }
  template <class T, class Make>
  std::vector<T> list(int most, Make make) {
    std::vector<T> values;
    for (int i = 0, n = pick(most + 1); i < n; ++i) values.push_back(make());
    return values;
  }

  std::optional<Peer> peer(const Plan& p) {
    if (!pick(2)) return {};
    if (pick(2) || p.axes.empty()) return Peer{.role_shift = pick(1)};
    return Peer{.axes = {AxisId{pick(size(p.axes))}}, .shift = pick(7) - 3};
  }

  std::vector<Shape> shapes_of_operands() {
    return list<Shape>(2, [&] { return Shape{list<std::int64_t>(3, [&] { return std::int64_t{pick(9)}; }), one<DType>(9)}; });
  }

  void fill_what(const Plan& p, Instruction& i, bool micro) {
    switch (pick(6)) {
      case 0: {
        Compute c{.op = operation(),
                  .phase = one<Phase>(7),
                  .flops = {pick(2) ? 0.1 * pick(1000) : 1e15},
                  .traffic = bytes(),
                  .accumulate = pick(2) == 1,
                  .accumulate_weights = pick(2) == 1,
                  .slice = slice(p),
                  .loss_scale = pick(2) ? 1 : 0.1 + pick(1000),
                  .dynamic_scale = pick(2) == 1};
        c.shapes = shapes_of_operands();
        if (micro) c.microbatch = ParamId{1};
        i.what = c;
        break;
      }
      case 1: i.what = HostCompute{operation(), bytes(), shapes_of_operands(), pick(2) ? 1 : 0.1 + pick(1000)}; break;
      case 2: i.what = Exchange{peer(p), peer(p), text(), bytes()}; break;
      case 3:
        if (!p.groups.empty())
          i.what = Collective{one<CollectiveKind>(6),
                              one<Algorithm>(6),
                              {pick(size(p.groups))},
                              bytes(),
                              one<DType>(9),
                              one<Combine>(3),
                              pick(2) == 1,
                              slice(p),
                              1 + pick(9)};
        else
          i.what = Mark{};
        break;
      case 4: i.what = Copy{bytes(), slice(p)}; break;
      default: i.what = Mark{}; break;
    }
  }

  Segment segment(const Plan& p) {
    Segment s{.name = text()};
    if (pick(2)) s.params = {{text(), ParamKind::Slot}, {"mb", ParamKind::Microbatch}};
    for (int n = pick(5); size(s.instructions) < n;) {
      Instruction i{.name = text(), .stream = {pick(shapes_.streams)}, .layer = {pick(shapes_.layers + 1) - 1}};
      fill_what(p, i, !s.params.empty() && pick(2));
      if (!s.instructions.empty() && pick(2)) i.after = {pick(size(s.instructions))};
      const auto event = [&] { return EventUse{{pick(shapes_.events)}, slot(s)}; };
      const auto block = [&] { return Block{{pick(shapes_.buffers)}, slot(s)}; };
      const auto use = [&] {
        Use u{.buffer = {pick(shapes_.buffers)}, .slot = slot(s)};
        if (pick(2)) u.from = {pick(8)};
        if (pick(2)) u.length = Bytes{pick(8)};
        return u;
      };
      if (shapes_.events > 0) i.waits = list<EventUse>(1, event), i.records = list<EventUse>(1, event);
      if (shapes_.buffers > 0) {
        i.reads = list<Use>(2, use), i.writes = list<Use>(2, use);
        i.acquires = list<Block>(1, block), i.releases = list<Block>(1, block);
      }
      s.instructions.push_back(i);
    }
    return s;
  }

  Buffer buffer(const Plan& p) {
    Buffer b{.name = text(),
             .category = one<Category>(kCategories),
             .space = one<Space>(4),
             .scope = one<Scope>(2),
             .dtype = one<DType>(9)};
    b.bytes = bytes() + Bytes{16}, b.resident = pick(2) == 1, b.offsets.clear();
    for (int s = 0; s < shapes_.slots; ++s) b.offsets.push_back(bytes());
    if (!p.tensors.empty())
      b.holds = list<Shard>(2, [&] {
        const int blocks = 1 + pick(3);
        return Shard{{pick(size(p.tensors))},
                     one<TensorPart>(5),
                     pick(2),
                     some<AxisId>(size(p.axes)),
                     blocks,
                     std::vector<std::int64_t>(static_cast<std::size_t>(pick(2) * blocks), 1 + pick(5)),
                     some<AxisId>(size(p.axes)),
                     bytes()};
      });
    return b;
  }

  Role role(const Plan& p) {
    Role r{.name = text(), .device_kind = "kind", .axes = some<AxisId>(size(p.axes))};
    for (int s = 0; s < shapes_.streams; ++s) r.streams.push_back({text(), one<StreamKind>(6)});
    for (int e = 0; e < shapes_.events; ++e) r.events.push_back({text(), shapes_.slots});
    for (int l = 0; l < shapes_.layers; ++l) r.layers.push_back(text());
    for (int b = 0; b < shapes_.buffers; ++b) r.buffers.push_back(buffer(p));
    for (int a = 0, n = p.segments.empty() ? 0 : pick(6); a < n; ++a) {
      Action action{.segment = {pick(size(p.segments))}};
      if (!p.segments[action.segment.index()].params.empty()) action.args = {pick(shapes_.slots), pick(p.microbatches)};
      action.does = list<Does>(2, [&] { return Does{one<Work>(5), pick(p.stages), pick(p.microbatches + 1) - 1, pick(2)}; });
      r.actions.push_back(action);
    }
    const int actions = size(r.actions), ahead = pick(2) ? 0 : pick(actions);
    for (int k = 0; k < ahead; ++k) r.ahead.push_back(ahead + pick(actions - ahead));
    std::ranges::sort(r.ahead);
    return r;
  }

  CostTable costs(const Plan& p) {
    CostTable table{.device_kind = "kind", .profile_hash = text()};
    for (const Segment& s : p.segments) {
      std::vector<Cost>& row = table.by_segment.emplace_back();
      while (row.size() < s.instructions.size())
        row.push_back(pick(2) ? Cost{.busy = {pick(1 << 30)}} : Cost{{pick(9)}, 1.0 / (1 + pick(7)), 0.1 * pick(9)});
    }
    return table;
  }

  std::mt19937 random_;
  Sizes shapes_;
};

}  // namespace

Plan random_plan(std::uint32_t seed) { return RandomPlan(seed).plan(); }

std::string mangled(const std::string& text, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  static const std::vector<std::string> values = {"0",
                                                  "1",
                                                  "-1",
                                                  "2",
                                                  "3",
                                                  "7",
                                                  "1000000",
                                                  "1e9",
                                                  "-5",
                                                  "9e18",
                                                  "0.5",
                                                  "null",
                                                  "\"x\"",
                                                  "[]",
                                                  "{}",
                                                  "true",
                                                  "99999999999999999999"};
  std::string out = text;
  std::size_t at = pick(out.size());
  if (pick(4) != 0) {  // a number, so that many results still parse
    const std::size_t digit = out.find_first_of("0123456789", at);
    if (digit == std::string::npos) return out;
    const std::size_t end = out.find_first_not_of("0123456789.e+-", digit);
    return out.replace(digit, end - digit, values[pick(values.size())]);
  }
  const std::size_t length = std::min(out.size() - at, 1 + pick(40));
  switch (pick(3)) {
    case 0: return out.erase(at, length);
    case 1: return out.insert(at, out.substr(pick(out.size()), length));
    default: return out.replace(at, 1, 1, static_cast<char>(pick(256)));
  }
}

}  // namespace foreshard
