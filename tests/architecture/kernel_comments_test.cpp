// The comments of GPU kernels name the host code that computes the same (the reference), the bytes that a kernel reads and writes, and what
// bounds its speed. A file of kernels names its references in the comment at its head, and states bounds there or kernel by kernel.
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

// What is wrong with a file of that text; "": nothing.
static std::string complaint(const std::string& file_text) {
  const std::int64_t kernels = count_of(file_text, "GPU_KERNEL \\w+\\(");
  if (kernels == 0) return "";
  const std::string text = std::regex_replace(file_text, std::regex("\\s*\n\\s*//\\s*"), " ");  // joins the lines of a comment
  const std::string head = text.substr(0, text.find("#pragma once"));
  std::smatch found;
  if (!std::regex_search(head, found, std::regex("References?[^:]*:([^:]*?)\\.(\n|$| )"))) return "names no reference";
  fs::path folder = kKernels;
  const std::string named = found[1].str();
  const std::regex file("[\\w/]+\\.(cpp|h)");
  std::int64_t files = 0;
  for (std::sregex_iterator at(named.begin(), named.end(), file), end; at != end; ++at, ++files) {
    const fs::path path = at->str();
    if (path.has_parent_path()) folder = path.parent_path();
    if (!fs::exists(kRoot / folder / path.filename())) return "its reference " + path.string() + " is not there";
  }
  if (files == 0) return "names no file as its reference";
  const std::string bound = "[Bb]ound by ";
  if (count_of(head, bound) > 0) return "";
  const std::int64_t bounds = count_of(text, bound);
  if (bounds < kernels) return std::to_string(kernels) + " kernels, " + std::to_string(bounds) + " bounds";
  return "";
}

TEST(KernelComments, SayReferenceBytesAndBound) {
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
  const std::string body = "#pragma once\n// Reads 2 bytes per element; bound by\n// memory.\nGPU_KERNEL a(const A a) {}\n";
  const std::string known = "// Sums.\n// References: exec/host/host_add.cpp;\n// exec/arithmetic/host_reduce.cpp.\n";
  EXPECT_EQ(complaint(known + body), "");
  EXPECT_EQ(complaint("// Sums.\n" + body), "names no reference");
  EXPECT_EQ(complaint("// Reference: exec/host/host_adds.cpp.\n" + body), "its reference exec/host/host_adds.cpp is not there");
  EXPECT_EQ(complaint("// Reference: the host.\n" + body), "names no file as its reference");
  EXPECT_EQ(complaint(known + body + "GPU_KERNEL b(const B b) {}\n"), "2 kernels, 1 bounds");
  EXPECT_EQ(complaint("// Reference: flash.h. All are bound by memory.\n" + body + "GPU_KERNEL b(const B b) {}\n"), "");
}

}  // namespace foreshard::layout
