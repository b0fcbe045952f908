#include "cli/parts/run_files.h"

#include <algorithm>

#include "core/base/error.h"
#include "exec/data/checkpoint.h"
#include "exec/data/file_samples.h"
#include "report/words/text_table.h"

namespace foreshard {

std::vector<VerbOption> with_run_files(std::vector<VerbOption> options) {
  const std::string group = "files";
  const std::vector<VerbOption> files = {
      {.name = "--data",
       .value = "FILE",
       .help = "a text, whose bytes are the tokens, or token numbers; without it random ones",
       .group = group},
      {.name = "--data-format", .value = "WORD", .help = "bytes, u16 or u32 (u16 for .bin files, else bytes)", .group = group},
      {.name = "--save",
       .value = "FILE",
       .help = "write a checkpoint after the last step, also when a signal makes that come early (safetensors layout)",
       .group = group},
      {.name = "--save-every", .value = "N", .help = "... and after every N-th step", .group = group},
      {.name = "--save-not-finite",
       .help = "save states with NaN or infinite numbers, too; without it such a run ends and FILE stays (exit code 1)",
       .group = group},
      {.name = "--keep", .value = "N", .help = "keep the last N checkpoints, too, as FILE.step-300 and so on", .group = group},
      {.name = "--resume",
       .value = "FILE",
       .help = "go on from a checkpoint with its seed and its data, whatever split it was saved under",
       .group = group},
      {.name = "--loss-log",
       .value = "FILE",
       .help = "write step, loss and time of every step as CSV; with --resume below what is there",
       .group = group}};
  options.insert(options.end(), files.begin(), files.end());
  return options;
}

static std::string in_words(const SampleSource& source) {
  return source.file + " (" + with_commas(static_cast<double>(source.bytes)) + " bytes, hash " + source.hash + ")";
}

// Throws Error when a resumed training would continue on other samples.
static void expect_same_samples(const Arguments& arguments, const SampleSource& then, const SampleSource& now) {
  const std::string& checkpoint = arguments.text("--resume");
  if (then.alike(now)) return;
  const std::string otherwise = " (--force goes on with ";
  if (now.random())
    throw Error(kCommandLine, "--data", "nothing",
                in_words(then) + ", which " + checkpoint + " was trained on" + otherwise + "random tokens)");
  if (then.random())
    throw Error(kCommandLine, "--data", now.file,
                "no file: " + checkpoint + " was trained on random tokens" + otherwise + "this file)");
  if (then.hash == now.hash && then.bytes == now.bytes)
    throw Error(kCommandLine, "--data-format", now.format,
                then.format + ", as which " + checkpoint + " was trained on the file");
  throw Error(kCommandLine, "--data", in_words(now),
              in_words(then) + ", which " + checkpoint + " was trained on" + otherwise + "this file)");
}

static void expect_same_data(ProcessMesh& mesh, const SampleSource& own) {
  const std::string first = mesh.all_gather(in_words(own))[0];
  if (first.substr(first.rfind('(') + 1) != in_words(own).substr(in_words(own).rfind('(') + 1))
    throw Error(own.file, "data", in_words(own), "the bytes that process 0 reads: " + first);
}

static std::unique_ptr<FileSamples> read_samples(const Arguments& arguments, const Plan& plan, std::uint64_t seed) {
  const std::string& file = arguments.text("--data");
  const std::vector<std::string>& formats = token_formats();
  const std::string format = arguments.choice("--data-format", file.ends_with(".bin") ? "u16" : "bytes", formats);
  const auto place = std::find(formats.begin(), formats.end(), format) - formats.begin();
  return std::make_unique<FileSamples>(file, static_cast<TokenFormat>(place), sample_needs(plan), seed);
}

RunStart use_run_files(const Arguments& arguments, const Plan& plan, ExecuteOptions& options) {
  RunStart start{.trained_on = sample_needs(plan).sequence > 0 ? "random tokens" : "random samples"};
  if (arguments.has("--save")) options.save = arguments.text("--save");
  options.saves.every = static_cast<int>(arguments.integer("--save-every", 0, 0, 1'000'000));
  options.saves.keep = static_cast<int>(arguments.integer("--keep", 0, 0, 1'000'000));
  options.saves.not_finite = arguments.flag("--save-not-finite");
  for (const char* option : {"--save-every", "--save-not-finite", "--keep"})
    if (arguments.has(option) && options.save.empty()) throw Error(kCommandLine, option, "no --save", "where to save");
  if (!arguments.has("--data") && arguments.has("--data-format"))
    throw Error(kCommandLine, "--data-format", "no --data", "a file of that format");
  std::optional<SampleSource> trained_on;
  if (arguments.has("--resume")) {
    options.resume = start.resumed = arguments.text("--resume");
    const TrainingPoint point = training_point(options.resume, options.processes);
    if (arguments.has("--seed") && options.seed != point.seed)
      throw Error(kCommandLine, "--seed", arguments.text("--seed"),
                  std::to_string(point.seed) + ", the seed of " + options.resume + ", or no --seed");
    options.resume_point = point;
    options.seed = point.seed, start.step = point.step, start.has_checksums = point.checksums;
    trained_on = point.source, start.knows_data = point.source.has_value();
  }
  if (arguments.has("--data")) {
    start.samples = read_samples(arguments, plan, options.seed);
    start.trained_on = start.samples->source().file;
    options.samples = start.samples.get();
  }
  const SampleSource now = start.samples ? start.samples->source() : SampleSource{};
  if (trained_on && !arguments.flag("--force")) expect_same_samples(arguments, *trained_on, now);
  if (options.processes && start.samples) expect_same_data(*options.processes, now);
  return start;
}

}  // namespace foreshard
