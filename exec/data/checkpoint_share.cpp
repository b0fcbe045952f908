#include "exec/data/checkpoint_share.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "exec/arithmetic/host_convert.h"

namespace foreshard {

namespace {

void put(std::string& text, std::int64_t number) { text.append(reinterpret_cast<const char*>(&number), sizeof number); }

std::string stored(const double* values, std::int64_t count, DType dtype) {
  std::string bytes(static_cast<std::size_t>(size_of(dtype).value * count), '\0');
  host::store(values, count, {reinterpret_cast<std::byte*>(bytes.data()), count, dtype}, 0);
  return bytes;
}

void loaded(const std::string& bytes, std::size_t at, std::int64_t count, DType dtype, double* values) {
  std::string part = bytes.substr(at, static_cast<std::size_t>(size_of(dtype).value * count));
  host::load({reinterpret_cast<std::byte*>(part.data()), count, dtype}, 0, count, values);
}

// The held elements as runs: index of the first, count, values.
std::string pack(const WholeTensor& own, DType dtype) {
  std::string text;
  const auto end = static_cast<std::int64_t>(own.held.size());
  for (std::int64_t first = 0; first < end; ++first) {
    if (!own.held[static_cast<std::size_t>(first)]) continue;
    const auto stop = std::find(own.held.begin() + first, own.held.end(), 0);
    const std::int64_t count = stop - own.held.begin() - first;
    put(text, first);
    put(text, count);
    text += stored(own.elements.data() + first, count, dtype);
    first += count;
  }
  return text;
}

void unpack(const std::string& text, DType dtype, WholeTensor& into) {
  const auto size = static_cast<std::int64_t>(into.elements.size());
  for (std::size_t at = 0; at < text.size();) {
    std::int64_t head[2] = {0, -1};  // first, count
    if (text.size() - at >= sizeof head) std::memcpy(head, text.data() + at, sizeof head);
    const auto [first, count] = head;
    at += sizeof head;
    const bool fits = count >= 0 && first >= 0 && first <= size && count <= size - first && at <= text.size() &&
                      count <= static_cast<std::int64_t>(text.size() - at) / size_of(dtype).value;
    if (!fits) throw DeviceError("the checkpoint", "a part from another process that does not fit its tensor");
    loaded(text, at, count, dtype, into.elements.data() + first);
    std::fill_n(into.held.begin() + first, count, 1);
    at += static_cast<std::size_t>(size_of(dtype).value * count);
  }
}

}  // namespace

WholeTensor gather_shares(ProcessMesh& mesh, WholeTensor own, bool sends, DType dtype) {
  const std::vector<std::string> parts = mesh.gather(sends ? pack(own, dtype) : std::string());
  for (const std::string& part : parts) unpack(part, dtype, own);
  static_cast<void>(mesh.all_gather(""));  // barrier: messages of processes that are ahead would fill the memory of process 0
  return sends ? WholeTensor{} : own;
}

std::vector<double> share_elements(ProcessMesh& mesh, const std::vector<double>& elements, DType dtype, std::int64_t count) {
  std::string own;
  if (mesh.process() == 0)
    own = static_cast<char>(dtype) + stored(elements.data(), static_cast<std::int64_t>(elements.size()), dtype);
  const std::string text = mesh.all_gather(own)[0];
  return mesh.process() == 0 ? elements : shared_elements_of(text, count);
}

std::vector<double> shared_elements_of(const std::string& text, std::int64_t count) {
  if (text.empty()) throw DeviceError("the checkpoint", "process 0 sent no tensor");
  const auto format = static_cast<DType>(text[0]);
  const bool number = format == DType::F64 || format == DType::F32 || format == DType::BF16 || format == DType::F16;
  const auto bytes = static_cast<std::int64_t>(text.size()) - 1;
  if (!number || bytes % size_of(format).value != 0 || bytes / size_of(format).value != count)
    throw DeviceError("the checkpoint",
                      "process 0 sent something else than a tensor of " + std::to_string(count) + " elements");
  std::vector<double> got(static_cast<std::size_t>(count));
  loaded(text, 1, count, format, got.data());
  return got;
}

}  // namespace foreshard
