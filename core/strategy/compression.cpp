#include "core/strategy/compression.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "core/strategy/strategy_option_kinds.h"

namespace foreshard {

namespace {

using option_kinds::shown;

struct CodecWord {
  Codec codec;
  const char* word;
  bool gradients, activations, dispatch;

  bool is_for(Compressed what) const {
    return what == Compressed::Gradients ? gradients : what == Compressed::Activations ? activations : dispatch;
  }
};
constexpr CodecWord kCodecs[] = {
    {Codec::None, "none", true, true, true},           {Codec::Segmented, "segmented", true, true, false},
    {Codec::Dgc, "dgc", true, false, false},           {Codec::OneBit, "one-bit", true, false, false},
    {Codec::EightBit, "eight-bit", true, false, true}, {Codec::Float8, "fp8", false, false, true}};
constexpr const char* kTokens = "token-topk";  // of activations, alone or beside a codec

double read_share(const std::string& text, double otherwise, const std::string& path, const std::string& where) {
  if (text.empty()) return otherwise;
  const auto share = option_kinds::parse<double>(text);
  if (!share || !(*share > 0) || *share > 1) throw Error(where, path, shown(text), "a share above 0 and at most 1");
  return *share;
}

int read_warm_up(const std::string& text, const std::string& path, const std::string& where) {
  if (text.empty()) return 0;
  const auto updates = option_kinds::parse<int>(text);
  if (!updates || *updates < 0) throw Error(where, path, shown(text), "a number of updates");
  return *updates;
}

// "8", "4x8". Two segments with equal numbers of levels are refused: they gain nothing.
void read_segments(const std::string& text, Compression& into, const std::string& path, const std::string& where) {
  const auto x = text.find('x');
  const auto bits = text.empty() ? std::optional(8) : option_kinds::parse<int>(text.substr(0, x));
  const auto segments = x == std::string::npos ? std::optional(0) : option_kinds::parse<int>(text.substr(x + 1));
  if (!bits || (*bits != 2 && *bits != 4 && *bits != 8)) throw Error(where, path, shown(text), "2, 4 or 8 bits");
  const bool known = segments && (*segments == 4 || *segments == 8 || *segments == 16);
  if (x != std::string::npos && (!known || 1 << *bits < *segments))
    throw Error(where, path, shown(text), "4, 8 or 16 segments, and at least a level in each");
  into.bits = *bits, into.segments = *segments;
}

}  // namespace

std::string to_text(const Compression& it) {
  const std::string tokens = it.tokens > 0 ? kTokens + (":" + option_kinds::shortest(it.tokens)) : "";
  if (it.tokens > 0 && it.codec == Codec::None) return tokens;
  const auto* word = std::ranges::find(kCodecs, it.codec, &CodecWord::codec)->word;
  const std::string name = (tokens.empty() ? "" : tokens + ",") + word;
  switch (it.codec) {
    case Codec::None:
    case Codec::Float8:
    case Codec::EightBit: return name;
    case Codec::Dgc: return name + ":" + option_kinds::shortest(it.kept);
    case Codec::OneBit: return it.warm_up > 0 ? name + ":" + std::to_string(it.warm_up) : name;
    case Codec::Segmented:
      return name + ":" + std::to_string(it.bits) + (it.segments > 0 ? "x" + std::to_string(it.segments) : "");
  }
  return name;
}

namespace {

// One word with its settings: "segmented:8".
void read_codec(const std::string& text, Compressed what, Compression& into, const std::string& path,
                const std::string& where) {
  const auto colon = text.find(':');
  const std::string name = text.substr(0, colon), rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (what == Compressed::Activations && name == kTokens) {
    if (into.tokens > 0) throw Error(where, path, shown(text), "one share of the tokens");
    into.tokens = read_share(rest, 0.5, path, where);
    return;
  }
  std::vector<std::string> words;
  for (const CodecWord& known : kCodecs)
    if (known.is_for(what)) words.emplace_back(known.word);
  if (what == Compressed::Activations) words.insert(words.begin() + 1, kTokens);
  const auto hit = std::ranges::find_if(kCodecs, [&](const CodecWord& known) { return name == known.word; });
  if (std::ranges::find(words, name) == words.end()) throw Error(where, path, shown(text), option_kinds::one_of(words, name));
  if (into.codec != Codec::None) throw Error(where, path, shown(text), "one codec beside token-topk");
  into.codec = hit->codec;
  switch (into.codec) {
    case Codec::None:
    case Codec::Float8:
    case Codec::EightBit:
      if (!rest.empty()) throw Error(where, path, shown(text), name + " and nothing behind it");
      break;
    case Codec::Dgc: into.kept = read_share(rest, into.kept, path, where); break;
    case Codec::OneBit: into.warm_up = read_warm_up(rest, path, where); break;
    case Codec::Segmented: read_segments(rest, into, path, where); break;
  }
}

}  // namespace

Compression parse_compression(const std::string& text, Compressed what, const std::string& path, const std::string& where) {
  Compression read;
  const auto comma = text.find(',');
  read_codec(text.substr(0, comma), what, read, path, where);
  if (comma == std::string::npos) return read;
  if (what != Compressed::Activations || !read.any()) throw Error(where, path, shown(text), "one codec");
  read_codec(text.substr(comma + 1), what, read, path, where);
  if (read.tokens == 0 || read.codec == Codec::None) throw Error(where, path, shown(text), "token-topk and one codec");
  return read;
}

}  // namespace foreshard
