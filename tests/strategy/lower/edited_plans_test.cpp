// Plans of the engine with one number, name or word of their file changed: check_plan or the reader refuses it, unless the change does not matter to what
// is trained. What may change is a table.
#include <cctype>
#include <map>
#include <string_view>

#include "core/base/error.h"
#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "strategy/tune/tune.h"
#include "tests/how_many.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::edited_plans_test {
namespace {

struct Scalar {           // of a JSON text
  std::string path = {};  // keys and "*" for places in a list
  std::size_t begin = 0, end = 0;
};

// Finds all numbers, texts and truth values of a JSON text that is known to be right.
class Scanner {
 public:
  explicit Scanner(const std::string& text) : text_(text) {}
  std::vector<Scalar> scalars() {
    value("");
    return std::move(found_);
  }

 private:
  void blanks() {
    while (at_ < text_.size() &&
           (std::isspace(static_cast<unsigned char>(text_[at_])) || text_[at_] == ',' || text_[at_] == ':'))
      ++at_;
  }
  std::string quoted() {
    const std::size_t begin = ++at_;
    while (text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    return text_.substr(begin, at_++ - begin);
  }
  void value(const std::string& path) {
    blanks();
    if (text_[at_] == '{') {
      for (++at_, blanks(); text_[at_] != '}'; blanks()) {
        const std::string key = quoted();
        value(path.empty() ? key : path + "." + key);
      }
      ++at_;
    } else if (text_[at_] == '[') {
      for (++at_, blanks(); text_[at_] != ']'; blanks()) value(path + ".*");
      ++at_;
    } else {
      Scalar scalar{.path = path, .begin = at_};
      if (text_[at_] == '"')
        quoted();
      else
        while (std::string_view(",]} \n").find(text_[at_]) == std::string_view::npos) ++at_;
      scalar.end = at_;
      if (path.find(".reads.") != std::string::npos || path.find(".writes.") != std::string::npos)
        scalar.path += operator_before();
      found_.push_back(scalar);
    }
  }

  // " of add": an instruction states its operator before its operands.
  std::string operator_before() const {
    const std::size_t op = text_.rfind("\"op\":\"", at_);
    if (op == std::string::npos) return "";
    const std::size_t begin = op + 6, end = text_.find('"', begin);
    return " of " + text_.substr(begin, end - begin);
  }

  const std::string& text_;
  std::size_t at_ = 0;
  std::vector<Scalar> found_;
};

// What a plan may differ in and still train the same. The first part of a path that ends in the text.
struct Free {
  std::string_view path, reason;
};
constexpr Free kFree[] = {
    {"origin", "for people, and for simulate"},
    {"costs", "times"},
    {"framework", "memory that the simulator reports"},
    {"reserve", "memory that the simulator reports"},
    {".name", "names are for people"},
    {"layers.*", "names are for people; the keys of dropout follow from them, in forward and backward alike"},
    {"device_kind", "which table of costs applies"},
    {".flops", "times"},
    {".traffic", "times"},
    {".others", "a load for the simulator"},
    {".layer", "for people; operators are compared within a layer, so that some changes are refused"},
    {"collective.dtype", "communicators use the format of the blocks"},
    {"collective.algorithm", "another way to the same sum"},
    {"collective.servers", "another way to the same sum"},
    {"collective.served_by.*", "another way to the same sum"},
    {"streams.*.kind", "times"},
    {".stream", "another order that agrees with all others that are needed"},
    {"after.*", "another order that agrees with all others that are needed"},
    {"waits.*.*", "another order that agrees with all others that are needed"},
    {"records.*.*", "another order that agrees with all others that are needed"},
    {"events.*.slots", "more slots than are used"},
    {"offsets.*", "other places that do not overlap"},
    {"acquires.*.*", "a life that begins at another instruction in issue order"},
    {"releases.*.*", "a life that ends at another instruction in issue order"},
    {"buffers.*.category", "a report of memory"},
    {"buffers.*.space", "which engine copies"},
    {"tensors.*.init", "other initial values: hyperparameters; the executor refuses words that it does not know"},
    {"placement.order.*", "on which device a rank runs"},
    {"exchange.tag", "both ends would have to change"},
    {"axes.*.expert", "of a plan without experts"},
    {"tensors.*.dtype", "the format in which checkpoints state the tensor"},
    {"params.*.name", "names are for people"},
    {"reads.*.* of add", "which of the earlier sums a residual sum adds, is the model"},
};
// Paths of which some changes are refused and some are not seen yet, although they may matter: uses of another block of the same size and
// kind, an action that runs the program of another one or passes another number, a group of as many other ranks, targets of a loss.
constexpr std::string_view kOpen[] = {"reads.*.*",       "writes.*.*",       "actions.*.*",     "actions.*.*.*",
                                      "buffers.*.bytes", "buffers.*.dtype",  "holds.*.part",    "holds.*.tensor",
                                      "groups.*.over.*", "collective.group", "collective.kind", "compute.slice",
                                      "settings.classes"};
bool is_open(std::string path) {
  path = path.substr(0, path.find(" of "));
  return std::ranges::any_of(kOpen, [&](std::string_view open) { return path.ends_with(open); });
}

bool is_free(const std::string& path) {
  return std::ranges::any_of(kFree, [&](const Free& free) {
    return path.ends_with(free.path) || path.starts_with(std::string(free.path) + ".") || path == free.path;
  });
}

// A neighbour of the value: a number one larger or smaller, another word of the same list, a name with a letter more.
std::string neighbour(const std::string& value, bool up) {
  static const std::vector<std::vector<std::string>> words = {
      {"data", "tensor", "context"},
      {"all_reduce", "reduce_scatter", "all_gather", "broadcast"},
      {"sum", "mean", "max"},
      {"fp32", "bf16"},
      {"value", "gradient", "momentum", "variance"},
      {"F", "B", "I", "W", "Update"},
      {"forward", "recompute", "input_grad", "weight_grad", "backward", "update", "other"},
      {"layernorm", "rmsnorm"},
      {"microbatch", "slot"},
      {"dense", "expert"},
      {"gelu", "relu", "tanh"}};
  if (value == "true") return "false";
  if (value == "false") return "true";
  if (value.front() != '"') {
    if (value.find_first_of(".e") != std::string::npos) return std::to_string(std::stod(value) * 2);
    const std::int64_t number = std::stoll(value);
    return std::to_string(up || number == 0 ? number + 1 : number - 1);
  }
  const std::string text = value.substr(1, value.size() - 2);
  if (text.starts_with("$")) return "\"$" + std::to_string(std::stoi(text.substr(1)) + 1) + "\"";
  for (const std::vector<std::string>& list : words)
    if (const auto at = std::ranges::find(list, text); at != list.end())
      return "\"" + list[static_cast<std::size_t>(at - list.begin() + 1) % list.size()] + "\"";
  return "\"" + text + "x\"";
}

// Changes that neither the reader nor check_plan refuses, at most six values of each path.
std::vector<std::string> accepted(const Plan& plan, int& tried) {
  const std::string text = to_json(plan);
  std::map<std::string, int> times;
  std::vector<std::string> all;
  const std::vector<Scalar> scalars = Scanner(text).scalars();
  for (std::size_t s = 0; s < scalars.size(); ++s) {
    const Scalar& scalar = scalars[(s * 7919) % scalars.size()];  // not only the first ones of each path
    if (is_free(scalar.path) || is_open(scalar.path) || ++times[scalar.path] > 6) continue;
    const std::string old = text.substr(scalar.begin, scalar.end - scalar.begin);
    // The format of a shape says which kernel runs; sizes follow from the formats of the blocks.
    if (scalar.path.ends_with("shapes.*.*") && old.front() == '"') continue;
    const std::string other = neighbour(old, times[scalar.path] % 2 == 0);
    ++tried;
    try {
      const Plan edited = parse_plan(text.substr(0, scalar.begin) + other + text.substr(scalar.end), "edited");
      if (check_plan(edited, {.most_defects = 1}).empty())
        all.push_back(scalar.path + " " + old + " -> " + other + " at byte " + std::to_string(scalar.begin));
    } catch (const Error&) {
    }
  }
  return all;
}

// One layer, two micro-batches of each replica.
Plan lowered_small(Strategy strategy) {
  Transformer t = std::get<Transformer>(gpt(2, 16, 2, 32, 8).shape);
  strategy.batch.micro = 1, strategy.batch.global = 2 * strategy.dp;
  strategy.precision = DType::F32;
  return std::get<Lowered>(
             tuned_plan({.name = "tiny", .shape = t}, load_cluster("dgx-a100"), strategy, {.ignore_memory = true}))
      .plan;
}

}  // namespace

TEST(EditedPlans, AreRefused) {
  const std::vector<std::pair<const char*, Strategy>> strategies = {
      {"data and pipeline", {.dp = 2, .pp = 2}},
      {"tensor and sequence", {.dp = 2, .tp = 2, .sequence_parallel = true}},
      {"tensor, ZeRO 1", {.dp = 2, .tp = 2, .zero = {.stage = 1}}},
      {"ZeRO 2", {.dp = 2, .zero = {.stage = 2}}},
      {"ZeRO 3, recomputed", {.dp = 2, .zero = {.stage = 3}, .recompute = {.kind = RecomputeKind::Full}}},
      {"context", {.dp = 2, .cp = 2}},
      {"clipped", {.dp = 2, .optimizer = {.clip_norm = 1}}},
  };
  int tried = 0;
  for (const auto& [name, strategy] : some_of(strategies, 3)) {
    const Plan plan = lowered_small(strategy);
    ASSERT_TRUE(check_plan(plan).empty()) << name;
    std::string all;
    for (const std::string& edit : accepted(plan, tried)) all += edit + "\n";
    EXPECT_EQ(all, "") << name;
  }
  EXPECT_GT(tried, how_many(200, 500));
}

}  // namespace foreshard::edited_plans_test
