#include "cli/notes.h"

#include <ostream>

#include "core/json.h"
#include "core/printable.h"
#include "report/text_table.h"

namespace foreshard {

void say(const Arguments& arguments, const Console& console, const std::string& note) {
  if (arguments.text("--progress") == "json")
    console.err << JsonWriter(0).begin_object().field("note", note).end_object().text() << "\n";
  else
    console.err << "foreshard: " << printable(note) << "\n";
}

static constexpr std::int64_t kLong = 8192;  // tokens: longer ones than most are trained on

void say_default_sequence(const Arguments& arguments, const Job& job, const Console& console) {
  const auto* transformer = std::get_if<Transformer>(&job.model.shape);
  if (!transformer || job.strategy.seq != 0 || transformer->max_positions <= kLong) return;
  say(arguments, console,
      "sequences of " + with_commas(static_cast<double>(transformer->max_positions)) + " tokens, the maximum of " +
          job.model.name + ": no --seq was given");
}

}  // namespace foreshard
