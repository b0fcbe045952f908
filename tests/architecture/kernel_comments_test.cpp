// Each kernel of the GPU stands beside its plain reference, and says what it moves and what limits it: a file of kernels names the reference in
// the comment at its head, and its kernels' bytes and limits there or one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

namespace foreshard::layout {

namespace fs = std::filesystem;

static const fs::path kRoot = FORESHARD_SOURCE, kKernels = "exec/cuda/kernels";

static std::int64_t count_of(const std::string& text, const std::string& pattern) {
  const std::regex wanted(pattern);
  return std::distance(std::sregex_iterator(text.begin(), text.end(), wanted), std::sregex_iterator());
}

// What is wrong with a file of that text; "" when nothing is.
static std::string complaint(const std::string& text) {
  const std::int64_t kernels = count_of(text, "GPU_KERNEL \\w+\\(");
  if (kernels == 0) return "";
  const std::string head = text.substr(0, text.find("#pragma once"));
  std::smatch found;
  if (!std::regex_search(head, found, std::regex("Plain references?[^:]*:([^;]*?)\\.(\n|$| )")))
    return "names no plain reference";
  fs::path folder = kKernels;
  const std::string named = found[1].str();
  const std::regex file("[\\w/]+\\.(cpp|h)");
  std::int64_t files = 0;
  for (std::sregex_iterator at(named.begin(), named.end(), file), end; at != end; ++at, ++files) {
    const fs::path path = at->str();
    if (path.has_parent_path()) folder = path.parent_path();
    if (!fs::exists(kRoot / folder / path.filename())) return "its plain reference " + path.string() + " is not there";
  }
  if (files == 0) return "names no file as its plain reference";
  if (head.find("limit:") != std::string::npos) return "";
  const std::int64_t limits = count_of(text, "limit:");
  if (limits < kernels) return std::to_string(kernels) + " kernels, " + std::to_string(limits) + " limits";
  return "";
}

TEST(KernelComments, SayReferenceBytesAndLimit) {
  int files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kRoot / kKernels)) {
    std::ifstream in(entry.path());
    std::ostringstream text;
    text << in.rdbuf();
    EXPECT_EQ(complaint(text.str()), "") << entry.path();
    files += count_of(text.str(), "GPU_KERNEL \\w+\\(") > 0 ? 1 : 0;
  }
  EXPECT_GE(files, 15);
}

TEST(KernelComments, TheRuleCanFail) {
  const std::string body = "#pragma once\n// Reads 2 bytes of bf16 per element; limit: memory.\nGPU_KERNEL a(const A a) {}\n";
  const std::string known = "// Sums.\n// Plain references: exec/host/host_add.cpp, host_matmul.cpp.\n";
  EXPECT_EQ(complaint(known + body), "");
  EXPECT_EQ(complaint("// Sums.\n" + body), "names no plain reference");
  EXPECT_EQ(complaint("// Plain reference: exec/host/host_adds.cpp.\n" + body),
            "its plain reference exec/host/host_adds.cpp is not there");
  EXPECT_EQ(complaint("// Plain reference: the host.\n" + body), "names no file as its plain reference");
  EXPECT_EQ(complaint(known + body + "GPU_KERNEL b(const B b) {}\n"), "2 kernels, 1 limits");
  EXPECT_EQ(complaint("// Plain reference: flash.h. Limit of all:  limit: memory\n" + body + "GPU_KERNEL b(const B b) {}\n"),
            "");
}

}  // namespace foreshard::layout
