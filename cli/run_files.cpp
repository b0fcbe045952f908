#include "cli/run_files.h"

#include "core/error.h"
#include "exec/checkpoint.h"
#include "exec/file_samples.h"

namespace foreshard {

std::vector<VerbOption> with_run_files(std::vector<VerbOption> options) {
  const std::string group = "files";
  const std::vector<VerbOption> files = {
      {.name = "--data",
       .value = "FILE",
       .help = "a text, whose bytes are the tokens, or token numbers; without it random samples",
       .group = group},
      {.name = "--data-format", .value = "WORD", .help = "bytes, u16 or u32 (u16 for .bin files, else bytes)", .group = group},
      {.name = "--save",
       .value = "FILE",
       .help = "write a checkpoint after the last step (safetensors layout)",
       .group = group},
      {.name = "--save-every", .value = "N", .help = "... and after every N-th step", .group = group},
      {.name = "--resume",
       .value = "FILE",
       .help = "go on from a checkpoint, whatever split it was saved under",
       .group = group}};
  options.insert(options.end(), files.begin(), files.end());
  return options;
}

std::unique_ptr<Samples> use_run_files(const Arguments& arguments, const Plan& plan, ExecuteOptions& options) {
  if (arguments.has("--save")) options.save = arguments.text("--save");
  options.save_every = static_cast<int>(arguments.integer("--save-every", 0, 0, 1'000'000));
  if (options.save_every > 0 && options.save.empty()) throw Error(kCommandLine, "--save-every", "no --save", "where to save");
  if (arguments.has("--resume")) {
    options.resume = arguments.text("--resume");
    options.seed = training_point(options.resume, options.processes).seed;
  }
  if (!arguments.has("--data")) {
    if (arguments.has("--data-format")) throw Error(kCommandLine, "--data-format", "no --data", "a file of that format");
    return nullptr;
  }
  const std::string& file = arguments.text("--data");
  const std::string format =
      arguments.choice("--data-format", file.ends_with(".bin") ? "u16" : "bytes", {"bytes", "u16", "u32"});
  auto samples = std::make_unique<FileSamples>(file,
                                               format == "bytes" ? TokenFormat::Bytes
                                               : format == "u16" ? TokenFormat::U16
                                                                 : TokenFormat::U32,
                                               sample_needs(plan), options.seed);
  options.samples = samples.get();
  return samples;
}

}  // namespace foreshard
