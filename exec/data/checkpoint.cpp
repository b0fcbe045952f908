#include "exec/data/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/json/json.h"
#include "exec/data/checkpoint_share.h"
#include "exec/data/rank_states.h"
#include "exec/data/safetensors.h"

namespace foreshard {

namespace {

constexpr std::pair<TensorPart, const char*> kParts[] = {{TensorPart::Value, ""},
                                                         {TensorPart::Master, "master."},
                                                         {TensorPart::Momentum, "momentum."},
                                                         {TensorPart::Variance, "variance."}};
constexpr const char* kFormat = "foreshard-checkpoint-2";
constexpr const char* kWithoutChecksums = "foreshard-checkpoint-1";  // the format of earlier versions
constexpr const char* kRankStates = "rank_states";                   // metadata key of layout_of_rank_states

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t dim : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + "]";
}

// Tokens of the model's vocabulary; further rows of an embedding table are padding. 0: the model has no vocabulary.
std::int64_t vocabulary_of(const Plan& plan) {
  for (const Segment& segment : plan.segments)
    for (const Instruction& instruction : segment.instructions)
      if (const auto* what = std::get_if<Compute>(&instruction.what))
        if (const auto* tokens = std::get_if<ops::TokenEmbedding>(&what->op)) return tokens->vocab;
  return 0;
}

// Reads a tensor and adds or removes rows of padding, so that it has the shape of the plan.
std::vector<double> read_in_shape(SafetensorsFile& file, const std::string& name, const Tensor& tensor,
                                  std::int64_t vocabulary) {
  const std::vector<std::int64_t>& found = file.at(name).shape;
  std::vector<double> elements = file.read(name);
  if (found == tensor.shape) return elements;
  const bool rows_differ = !found.empty() && found.size() == tensor.shape.size() &&
                           std::equal(found.begin() + 1, found.end(), tensor.shape.begin() + 1);
  if (!rows_differ || vocabulary == 0 || std::min(found[0], tensor.shape[0]) < vocabulary)
    throw Error(file.path(), name, "shape " + shape_text(found), "shape " + shape_text(tensor.shape));
  elements.resize(elements.size() / static_cast<std::size_t>(found[0]) * static_cast<std::size_t>(tensor.shape[0]));
  return elements;
}

struct Entry {
  TensorId tensor = {};
  TensorPart part = {};
  DType dtype = {};
};

// The tensors in a checkpoint of this plan, in the order of the file.
std::vector<Entry> entries_of(const Plan& plan, const TensorPieces& pieces) {
  std::vector<Entry> entries;
  for (const auto& [part, prefix] : kParts)
    for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
      const TensorId id{static_cast<std::int32_t>(t)};
      if (const auto dtype = pieces.dtype(id, part)) entries.push_back({id, part, *dtype});
    }
  return entries;
}

const char* prefix_of(TensorPart part) {
  for (const auto& [known, prefix] : kParts)
    if (known == part) return prefix;
  return "";
}

bool has_file(const ProcessMesh* mesh) { return !mesh || mesh->process() == 0; }

}  // namespace

namespace {

// What the processes have written, [tensor of the file]. Numbers of 64 bits that the processes add up.
struct Written {
  explicit Written(std::size_t tensors) : elements(tensors), not_finite(tensors), checksums(tensors) {}
  std::vector<std::uint64_t> elements, not_finite;
  std::vector<std::uint64_t> checksums;  // their sum is modulo 2^64

  void add(ProcessMesh& mesh);  // those of all processes
};

// Writes all elements that `own` holds, and counts them.
void write_held(TensorPlaces& file, std::size_t tensor, const WholeTensor& own, Written& written) {
  for (auto from = std::find(own.held.begin(), own.held.end(), 1); from != own.held.end();) {
    const auto to = std::find(from, own.held.end(), 0);
    const std::int64_t first = from - own.held.begin(), length = to - from;
    const auto run = std::span(own.elements).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(length));
    file.write(tensor, first, run);
    written.elements[tensor] += run.size();
    for (const double element : run) written.not_finite[tensor] += std::isfinite(element) ? 0 : 1;
    from = std::find(to, own.held.end(), 1);
  }
}

// The sums over all processes, modulo 2^64.
std::vector<std::uint64_t> summed(ProcessMesh& mesh, const std::vector<std::uint64_t>& own) {
  std::vector<std::uint64_t> all(own.size());
  const std::string text(reinterpret_cast<const char*>(own.data()), own.size() * sizeof own[0]);
  for (const std::string& told : mesh.all_gather(text)) {
    if (told.size() != text.size()) throw DeviceError("the checkpoint", "a process has other tensors");
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::uint64_t count = 0;
      std::memcpy(&count, told.data() + i * sizeof count, sizeof count);
      all[i] += count;
    }
  }
  return all;
}

void Written::add(ProcessMesh& mesh) {
  for (std::vector<std::uint64_t>* part : {&elements, &not_finite, &checksums}) *part = summed(mesh, *part);
}

// The name of the first tensor of which an element is missing, or not finite; "": there is none.
std::string first_of(const std::vector<StoredTensor>& stored, const std::function<bool(std::size_t)>& wrong) {
  for (std::size_t i = 0; i < stored.size(); ++i)
    if (wrong(i)) return stored[i].name;
  return "";
}

std::vector<StoredTensor> stored_of(const Plan& plan, const std::vector<Entry>& entries, const std::vector<RankState>& states) {
  std::vector<StoredTensor> stored;
  for (const Entry& entry : entries) {
    const Tensor& tensor = plan.tensors[entry.tensor.index()];
    stored.push_back({.name = prefix_of(entry.part) + tensor.name, .dtype = entry.dtype, .shape = tensor.shape});
  }
  for (const RankState& state : states) stored.push_back({.name = state.name, .dtype = state.dtype, .shape = {state.elements}});
  return stored;
}

}  // namespace

SavedCheckpoint save_checkpoint(const std::string& path, const Plan& plan, const Ranks& ranks,
                                const std::vector<const RankMemory*>& memories, const TrainingPoint& point, ProcessMesh* mesh,
                                NotFinite not_finite) {
  const TensorPieces pieces(plan, ranks);
  const std::vector<Entry> entries = entries_of(plan, pieces);
  const std::vector<RankState> states = rank_states(plan, ranks);
  const std::vector<StoredTensor> stored = stored_of(plan, entries, states);
  std::optional<SafetensorsWriter> writer;
  std::unique_ptr<TensorPlaces> joined;
  if (has_file(mesh)) {
    std::map<std::string, std::string> words = words_of(point);
    words["format"] = kFormat;
    if (!states.empty()) words[kRankStates] = layout_of_rank_states(plan);
    writer.emplace(path, stored, words);
  }
  SavedCheckpoint saved;
  if (mesh) {
    const std::string mark = mesh->all_gather(writer ? writer->mark() : "")[0];
    if (!writer) joined = join_writer(path, stored, mark);
    saved.writers = static_cast<int>(summed(*mesh, {writer || joined ? 1U : 0U})[0]);
  }
  TensorPlaces* file = writer ? &writer->places() : joined.get();
  Written written(stored.size());
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const bool of_rank = i >= entries.size();
    WholeTensor own =
        of_rank ? read_state(memories, states[i - entries.size()]) : pieces.share(memories, entries[i].tensor, entries[i].part);
    if (mesh && saved.writers < mesh->processes()) own = gather_shares(*mesh, std::move(own), !file, stored[i].dtype);
    if (file) write_held(*file, i, own, written);
  }
  if (joined) joined->sync();
  if (file) written.checksums = file->checksums();
  if (mesh) written.add(*mesh);  // also a barrier: all processes have written
  const auto missing = [&](std::size_t i) { return written.elements[i] != static_cast<std::uint64_t>(stored[i].elements()); };
  if (const std::string name = first_of(stored, missing); !name.empty())
    throw Error(path, name, "elements that no rank holds", "a plan whose ranks hold the whole model");
  saved.not_finite = first_of(stored, [&](std::size_t i) { return written.not_finite[i] != 0; });
  if (writer && (saved.not_finite.empty() || not_finite == NotFinite::Save)) writer->finish(written.checksums);
  if (mesh) static_cast<void>(mesh->all_gather(""));  // barrier: no process returns before the file is on disk
  return saved;
}

static void expect_checkpoint(const SafetensorsFile& file) {
  const auto format = file.metadata().find("format");
  const bool there = format != file.metadata().end();
  if (!there || (format->second != kFormat && format->second != kWithoutChecksums))
    throw Error(file.path(), "__metadata__.format", there ? "\"" + format->second + "\"" : "nothing",
                std::string("\"") + kFormat + "\"");
  if (format->second == kFormat && !file.has_checksums())
    throw Error(file.path(), "__metadata__.header_checksum", "nothing", "a checksum: the file is damaged");
}

static std::string told_words(const std::map<std::string, std::string>& words) {
  JsonWriter json(0);
  json.begin_object();
  for (const auto& [key, value] : words) json.field(key, value);
  return json.end_object().text();
}

TrainingPoint training_point(const std::string& path, ProcessMesh* mesh) {
  std::map<std::string, std::string> words;
  if (has_file(mesh)) {
    const SafetensorsFile file(path);
    expect_checkpoint(file);
    words = file.metadata();
  }
  if (mesh) {
    const std::string told = mesh->all_gather(told_words(words))[0];
    words.clear();
    for (const auto& [key, value] : JsonReader::parse(told, path).members()) words[key] = value.as_string();
  }
  TrainingPoint point = point_of(words, path);
  point.checksums = words["format"] == kFormat;
  return point;
}

// Throws Error for a tensor that the plan does not have; it would be ignored silently otherwise.
static void expect_known(const SafetensorsFile& file, const Plan& plan) {
  for (const StoredTensor& tensor : file.tensors()) {
    std::string name = tensor.name;
    if (names_rank_state(name)) continue;
    for (const auto& [part, prefix] : kParts)
      if (part != TensorPart::Value && name.starts_with(prefix)) name = name.substr(std::string(prefix).size());
    const bool known = std::any_of(plan.tensors.begin(), plan.tensors.end(), [&](const Tensor& t) { return t.name == name; });
    if (!known) throw Error(file.path(), tensor.name, "a tensor that the plan does not have", "a checkpoint of the same model");
  }
}

// The tensor of the file from which an entry is read.
static std::string name_in_file(const SafetensorsFile& file, const Entry& entry, const Plan& plan) {
  const std::string& name = plan.tensors[entry.tensor.index()].name;
  const bool weights = entry.part == TensorPart::Value || entry.part == TensorPart::Master;
  if (weights) return file.has("master." + name) ? "master." + name : name;
  return prefix_of(entry.part) + name;
}

// The elements of an entry, and the number format in which the file has them.
static std::pair<std::vector<double>, DType> read_entry(SafetensorsFile& file, const Entry& entry, const Plan& plan,
                                                        std::int64_t vocabulary) {
  const Tensor& tensor = plan.tensors[entry.tensor.index()];
  const std::string name = name_in_file(file, entry, plan);
  if (!file.has(name))
    throw Error(file.path(), name, "nothing", "this tensor of " + shape_text(tensor.shape) + ", as the plan has it");
  return {read_in_shape(file, name, tensor, vocabulary), file.at(name).dtype};
}

// Opens the file if this process sees a safetensors file there.
static std::optional<SafetensorsFile> file_if_there(const std::string& path) {
  try {
    return SafetensorsFile(path);
  } catch (const Error&) {
    return {};
  }
}

// The processes that read a checkpoint: all if all see the same file, else process 0.
struct CheckpointReaders {
  std::optional<SafetensorsFile> file = {};  // nothing if this process does not read
  int count = 1;                             // number of processes that read
  ProcessMesh* shares = nullptr;             // to send what process 0 reads; null: each process reads what its ranks need
};
static CheckpointReaders readers_of(const std::string& path, const Plan& plan, const TrainingPoint& point, ProcessMesh* mesh) {
  CheckpointReaders readers;
  if (has_file(mesh)) {
    readers.file.emplace(path);
    expect_checkpoint(*readers.file);
    expect_known(*readers.file, plan);
    if (TrainingPoint now = point_of(readers.file->metadata(), path); words_of(now) != words_of(point))
      throw Error(path, "__metadata__", "step " + std::to_string(now.step) + " of another training",
                  "step " + std::to_string(point.step) + " as before: another run has replaced the file");
  } else {
    readers.file = file_if_there(path);
  }
  if (!mesh) return readers;
  const std::vector<std::string> seen = mesh->all_gather(readers.file ? readers.file->fingerprint() : "");
  const bool same = std::all_of(seen.begin(), seen.end(), [&](const std::string& one) { return one == seen[0]; });
  if (same && !seen[0].empty()) {
    readers.count = mesh->processes();
  } else {
    readers.shares = mesh;
    if (!has_file(mesh)) readers.file.reset();
  }
  return readers;
}

// Loads the rank states if the plan lays them out as the plan did that was saved.
static void load_rank_states(SafetensorsFile* file, const Plan& plan, const Ranks& ranks,
                             const std::vector<const RankMemory*>& memories, ProcessMesh* mesh, std::set<std::string>& used) {
  std::string layout;
  if (file)
    if (const auto found = file->metadata().find(kRankStates); found != file->metadata().end()) layout = found->second;
  if (mesh) layout = mesh->all_gather(layout)[0];
  if (layout.empty() || layout != layout_of_rank_states(plan)) return;
  for (const RankState& state : rank_states(plan, ranks)) {
    std::vector<double> read;
    used.insert(state.name);
    if (!mesh && !memories[state.rank.index()]) continue;
    if (file) {
      if (!file->has(state.name) || file->at(state.name).elements() != state.elements)
        throw Error(file->path(), state.name, "nothing of that size", std::to_string(state.elements) + " elements");
      read = file->read(state.name);
    }
    write_state(memories, state, mesh ? share_elements(*mesh, read, state.dtype, state.elements) : read);
  }
}

// Compares with their checksums the tensors that the plan does not use, dealt to the processes that read.
static void verify_the_rest(SafetensorsFile& file, const std::set<std::string>& used, int reader, int readers) {
  int next = 0;
  for (const StoredTensor& tensor : file.tensors())
    if (!used.contains(tensor.name) && next++ % readers == reader) file.verify(tensor.name);
}

int load_checkpoint(const std::string& path, const Plan& plan, const Ranks& ranks,
                    const std::vector<const RankMemory*>& memories, const TrainingPoint& point, ProcessMesh* mesh) {
  CheckpointReaders readers = readers_of(path, plan, point, mesh);
  std::optional<SafetensorsFile>& file = readers.file;
  const TensorPieces pieces(plan, ranks);
  const std::int64_t vocabulary = vocabulary_of(plan);
  std::set<std::string> used;  // tensors that a process reads
  for (const Entry& entry : entries_of(plan, pieces)) {
    if (file) used.insert(name_in_file(*file, entry, plan));
    if (!readers.shares && !pieces.kept(memories, entry.tensor, entry.part)) continue;
    std::pair<std::vector<double>, DType> read;
    if (file) read = read_entry(*file, entry, plan, vocabulary);
    const std::vector<std::int64_t>& shape = plan.tensors[entry.tensor.index()].shape;
    const std::int64_t count = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    pieces.scatter(memories, entry.tensor, entry.part,
                   readers.shares ? share_elements(*readers.shares, read.first, read.second, count) : read.first);
  }
  load_rank_states(file ? &*file : nullptr, plan, ranks, memories, readers.shares, used);
  if (file) verify_the_rest(*file, used, mesh && !readers.shares ? mesh->process() : 0, readers.count);
  return readers.count;
}

}  // namespace foreshard
