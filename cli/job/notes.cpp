#include "cli/job/notes.h"

#include <ostream>

#include "core/base/printable.h"
#include "core/json/json.h"
#include "core/strategy/strategy_options.h"
#include "report/words/text_table.h"
#include "strategy/kernels/machine_constants.h"

namespace foreshard {

void say(const Arguments& arguments, const Console& console, const std::string& note) {
  if (console.notes != nullptr) console.notes->push_back(note);
  if (arguments.text("--progress") == "json")
    console.err << JsonWriter(0).begin_object().field("note", note).end_object().text() << "\n";
  else
    console.err << "foreshard: " << printable(note) << "\n";
}

static constexpr std::int64_t kLong = 8192;  // tokens; few models are trained on longer sequences

static void say_default_sequence(const Arguments& arguments, const Job& job, const Console& console) {
  const auto* transformer = std::get_if<Transformer>(&job.model.shape);
  if (!transformer || job.strategy.batch.seq != 0 || transformer->max_positions <= kLong) return;
  say(arguments, console,
      "sequences of " + with_commas(static_cast<double>(transformer->max_positions)) + " tokens, the maximum of " +
          job.model.name + ": no --seq was given");
}

static void say_replaced(const Arguments& arguments, const Console& console) {
  const std::string noun = "strategy.";
  for (const std::string& setting : arguments.all("--set")) {
    if (!setting.starts_with(noun)) continue;
    const std::string path = setting.substr(noun.size(), setting.find('=') - noun.size());
    const StrategyOption* option = find_option(path);
    if (option && !option->flag.empty() && arguments.has(option->flag))
      say(arguments, console, option->flag + " changes nothing here: --set " + noun + path + " wins over it");
  }
}

// The number formats of a quantized checkpoint are not those of its training.
static void say_quantized(const Arguments& arguments, const Console& console) {
  const std::string key = "quantization_config", file = model_file(arguments.text("--model"));
  const auto found = JsonReader::parse(read_file(file), file).find(key);
  if (found && !found->is_null())
    say(arguments, console, key + " of " + file + " changes nothing: --precision says what formats it is trained in");
}

// Another vendor's card, or a generation that no measured run was on.
static void say_never_compared(const Arguments& arguments, const Job& job, const Console& console) {
  std::string last;
  for (const NodeGroup& group : job.cluster.nodes) {
    const Gpu& gpu = gpu_of(job.cluster, group.shape.gpu);
    if (gpu.name == last || gpu.architecture == "host" || has_own_constants(gpu.architecture)) continue;
    last = gpu.name;
    say(arguments, console,
        "predictions for " + gpu.name + " (" + gpu.architecture +
            ") were never compared with a measurement: its peaks count with constants of no card of its kind");
  }
}

void say_of_job(const Arguments& arguments, const Job& job, const Console& console) {
  say_replaced(arguments, console);
  say_quantized(arguments, console);
  say_default_sequence(arguments, job, console);
  say_never_compared(arguments, job, console);
}

}  // namespace foreshard
