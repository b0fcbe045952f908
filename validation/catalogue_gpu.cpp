#include "validation/catalogue_gpu.h"

#include <algorithm>
#include <cctype>

namespace foreshard {

namespace {

struct GpuWord {
  const char* word;  // lower case, with '-' replaced by a blank
  int memory;        // GB that the text must state; 0: any
  const char* form;  // word that the text must also have; "": any
  const char* name;  // in the catalogue; "": not there, although a later entry would match
};
// The first match counts: "h200" is also in "gh200", "b200" in "gb200".
constexpr GpuWord kGpuWords[] = {{"gb300", 0, "", "gb300"},
                                 {"gb200", 0, "", "gb200"},
                                 {"gh200", 144, "", ""},
                                 {"gh200", 0, "", "gh200-96"},
                                 {"b300", 0, "", "b300"},
                                 {"b200", 0, "", "b200"},
                                 {"h200", 0, "nvl", "h200-nvl-141"},
                                 {"h200", 0, "", "h200"},
                                 {"h100", 0, "nvl", "h100-nvl-94"},
                                 {"h100", 94, "", "h100-nvl-94"},
                                 {"h100", 0, "pcie", "h100-pcie-80"},
                                 {"h100", 96, "", "h100-96"},
                                 {"h100", 0, "", "h100-80"},
                                 {"h800", 0, "pcie", ""},
                                 {"h800", 0, "nvl", ""},
                                 {"h800", 0, "", "h800-80"},
                                 {"h20", 141, "", ""},
                                 {"h20", 0, "", "h20"},
                                 {"a100", 40, "pcie", "a100-pcie-40"},
                                 {"a100", 0, "pcie", "a100-pcie-80"},
                                 {"a100", 40, "", "a100-40"},
                                 {"a100", 0, "", "a100-80"},
                                 {"a800", 40, "", ""},
                                 {"a800", 0, "pcie", ""},
                                 {"a800", 0, "", "a800-80"},
                                 {"a40", 0, "", "a40"},
                                 {"a10g", 0, "", ""},  // AWS's card: the memory of an A10, slower tensor cores
                                 {"a10", 0, "", "a10"},
                                 {"v100", 16, "", "v100-16"},
                                 {"v100", 0, "", "v100-32"},
                                 {"l40s", 0, "", "l40s"},
                                 {"3090 ti", 0, "", ""},
                                 {"3090ti", 0, "", ""},
                                 {"3090", 0, "", "rtx-3090"},
                                 {"4090", 0, "", "rtx-4090"},
                                 {"5090d", 0, "", ""},
                                 {"5090", 0, "laptop", ""},
                                 {"5090", 0, "", "rtx-5090"},
                                 {"5060 ti", 0, "", "rtx-5060-ti"},
                                 {"pro 6000", 0, "", "rtx-pro-6000"},
                                 {"6000 ada", 0, "", "rtx-6000-ada"},
                                 {"a6000", 0, "", "rtx-a6000"}};

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// No digit may follow a number: "a10" is not found in "a100", nor "h20" in "h200".
bool names(const std::string& text, const std::string& word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    if (!digit(text[at + word.size()])) return true;
  return false;
}

// Texts on SXM modules often mention the PCIe of the host.
bool has_form(const std::string& text, const std::string& form) {
  if (form.empty()) return true;
  if (form == "pcie" && text.find("sxm") != std::string::npos) return false;
  for (std::size_t at = text.find(form); at != std::string::npos; at = text.find(form, at + 1))
    if (!letter(text[at + form.size()])) return true;  // "nvl" is not NVLink
  return false;
}

// Finds "40GB", "40 GiB", and the bare number in a name: "a100-40", "A100 40". `text` is in lower case.
bool has_memory(const std::string& text, const std::string& card, int gigabytes) {
  if (gigabytes == 0) return true;
  const std::string number = std::to_string(gigabytes);
  for (std::size_t at = text.find(number); at != std::string::npos; at = text.find(number, at + 1)) {
    const std::string before = text.substr(0, at), after = text.substr(at + number.size());
    if (!before.empty() && digit(before.back())) continue;
    for (const char* unit : {"gb", "gib", " gb", " gib", "g "})
      if (after.starts_with(unit)) return true;
    if (digit(after[0]) || letter(after[0])) continue;
    if (before.ends_with("-") || before.ends_with(card + " ")) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> catalogue_gpu(const std::string& text) {
  std::string low = text + " ";  // so that a character follows every word
  std::transform(low.begin(), low.end(), low.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (low.starts_with("unknown")) return {};
  std::string words = low;
  std::replace(words.begin(), words.end(), '-', ' ');
  for (const GpuWord& entry : kGpuWords)
    if (names(words, entry.word) && has_form(words, entry.form) && has_memory(low, entry.word, entry.memory))
      return *entry.name ? std::optional<std::string>(entry.name) : std::nullopt;
  return {};
}

}  // namespace foreshard
