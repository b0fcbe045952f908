// Algorithms of products: timed once per form, kept in a file, the same for all.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/json/json.h"
#include "exec/cuda/product_choice.h"
#include "tests/cuda/fake_training.h"

namespace foreshard::gpu::product_choice_test {

namespace {

// A folder that is gone afterwards, and a file that is not in it yet.
class ProductFiles : public testing::Test {
 protected:
  ProductFiles() { std::filesystem::create_directories(folder_); }
  ~ProductFiles() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/inner/products.json"; }
  void put(const std::string& text) const {
    std::filesystem::create_directories(folder_ + "/inner");
    std::ofstream(path()) << text;
  }

 private:
  std::string folder_ = testing::TempDir() + "products" + std::to_string(getpid());
};

// Nanoseconds by each of five algorithms: of the four that are tried the third is the quickest.
const std::vector<std::int64_t> kTimes = {900, 700, 200, 800, 100};

Plan small_plan(DType precision = DType::BF16) {
  Strategy strategy = in_double({.batch = {.micro = 4}});
  strategy.precision = precision;
  return lowered(two_layers(tiny_gpt()), strategy);
}

Execution train(FakeRuntime& runtime, const std::string& path, const Plan& plan = small_plan()) {
  ExecuteOptions options = fake_training(2);
  options.devices = ranks_on(runtime, {.products = path});
  Execution done = run(plan, options);
  for (const std::string& conflict : runtime.conflicts()) ADD_FAILURE() << conflict;
  return done;
}

// Of what a training says, the notes about the file.
std::ptrdiff_t of_the_file(const Execution& done, const std::string& path) {
  return std::ranges::count_if(done.notes, [&](const std::string& note) { return note.find(path) != std::string::npos; });
}

// A GPU with a product of zeros.
struct OneProduct {
  explicit OneProduct(const std::vector<std::int64_t>& times = kTimes) : fake({.product_times = times}) {
    memory = fake.allocate(Space::Device, {4096});
    fake.synchronize(fake.legacy_stream());
    const auto tile = [&](std::int64_t from) { return Matrix{.data = memory + from, .row = 8, .dtype = DType::BF16}; };
    product = {.m = 8, .n = 8, .k = 8, .a = tile(0), .b = tile(1024), .c = tile(2048)};
  }
  ~OneProduct() { fake.release(Space::Device, memory); }
  OneProduct(const OneProduct&) = delete;
  OneProduct& operator=(const OneProduct&) = delete;

  mutable FakeRuntime fake;
  Runtime& runtime = fake;
  std::byte* memory = nullptr;
  Multiply product = {};
};

ProductFile::Row row(const std::string& product) { return {"gpu", "library", product}; }
Algorithm algorithm(std::uint64_t number) { return {.words = {number, ~std::uint64_t{0}}}; }

}  // namespace

TEST_F(ProductFiles, TheQuickestOfTheFirstIsTakenAndFoundAgain) {
  FakeRuntime first({.product_times = kTimes}), second({.product_times = kTimes}), plain({.product_times = kTimes});
  const Execution timed = train(first, path()), found = train(second, path()), without = train(plain, "");
  EXPECT_EQ(of_the_file(timed, path()), 0);
  EXPECT_GE(first.products_by().at(0), 4);  // each candidate is tried
  EXPECT_GE(first.products_by().at(3), 4);
  EXPECT_FALSE(first.products_by().contains(4));
  EXPECT_FALSE(first.products_by().contains(-1));
  ASSERT_EQ(second.products_by().size(), 1U);  // nothing is tried again: only the third is called
  EXPECT_TRUE(second.products_by().contains(2));
  EXPECT_EQ(plain.products_by().size(), 1U);
  EXPECT_TRUE(plain.products_by().contains(-1));
  // Trying left no trace: the arenas hold zeros when the training begins.
  for (const Execution* other : {&timed, &found})
    for (std::size_t step = 0; step < without.steps.size(); ++step)
      EXPECT_EQ(other->steps[step].loss, without.steps[step].loss);
  EXPECT_EQ(difference(timed, without).largest(), 0);
}

TEST_F(ProductFiles, AFormIsTimedOncePerKindOfGpu) {
  FakeRuntime runtime({.devices = 2, .product_times = kTimes});
  std::vector<std::byte*> memory;
  ProductChoice choice(runtime, path());
  std::vector<Multiply> products;
  for (int gpu = 0; gpu < 2; ++gpu) {
    runtime.select(gpu);
    std::byte* at = runtime.allocate(Space::Device, {4096});
    memory.push_back(at);
    runtime.synchronize(runtime.legacy_stream());
    const auto tile = [&](std::int64_t from) { return Matrix{.data = at + from, .row = 8, .dtype = DType::BF16}; };
    const Multiply product{.m = 8, .n = 8, .k = 8, .a = tile(0), .b = tile(1024), .c = tile(2048)};
    choice.decide(gpu, {product, product});
    ASSERT_NE(choice.of(product, gpu), nullptr);
    EXPECT_EQ(choice.of(product, gpu)->words[1], 2U);
    for (int i = 0; i < 4096; ++i) ASSERT_EQ(at[i], std::byte{0}) << i;
    Multiply other = product;
    other.c.data += 8;  // begins elsewhere: another form
    EXPECT_EQ(choice.of(other, gpu), nullptr);
  }
  EXPECT_EQ(choice.timed(), 1);
  for (std::byte* at : memory) runtime.release(Space::Device, at);
}

// Whoever pointed us at a file of his own finds it as it was.
TEST_F(ProductFiles, AFileThatIsNoneOfOursIsLeftAloneAndTold) {
  for (const std::string text :
       {"", "{", "a shopping list", "[1, 2]", R"({"format": "foreshard products", "version": 9, "products": []})",
        R"({"format": "foreshard products", "version": 1, "products": [{"gpu": 3}]})"}) {
    put(text);
    const OneProduct one;
    ProductChoice choice(one.runtime, path());
    choice.decide(0, {one.product});
    ASSERT_EQ(choice.notes().size(), 1U) << text;
    EXPECT_NE(choice.notes()[0].find(path()), std::string::npos);
    EXPECT_NE(choice.notes()[0].find("not kept"), std::string::npos);
    EXPECT_EQ(read_file(path()), text);
    EXPECT_EQ(choice.of(one.product, 0)->words[1], 2U);  // timed all the same
  }
  FakeRuntime runtime({.product_times = kTimes});
  EXPECT_EQ(of_the_file(train(runtime, path()), path()), 1);  // who runs it hears of that
}

TEST_F(ProductFiles, WhatTheLibraryRefusesIsTimedAgain) {
  const OneProduct one;
  const auto decided = [&] {
    ProductChoice choice(one.runtime, path());
    choice.decide(0, {one.product});
    EXPECT_TRUE(choice.notes().empty());
    EXPECT_EQ(choice.of(one.product, 0)->words[1], 2U);
    return choice.timed();
  };
  EXPECT_EQ(decided(), 1);
  EXPECT_EQ(decided(), 0);
  const ProductFile good = parse_product_file(read_file(path()), path());
  ASSERT_EQ(good.rows.size(), 1U);
  ProductFile bad = good;
  bad.rows.begin()->second.words[2] ^= 1;
  write_file(path(), to_json(bad));
  EXPECT_EQ(decided(), 1);
  EXPECT_EQ(parse_product_file(read_file(path()), path()), good);
  // Of another GPU or another version of the library: as if it were not there, and it stays.
  ProductFile foreign;
  const auto& [of, algorithm] = *good.rows.begin();
  foreign.rows[{"another GPU", of.library, of.product}] = algorithm;
  foreign.rows[{of.gpu, "another library", of.product}] = algorithm;
  write_file(path(), to_json(foreign));
  EXPECT_EQ(decided(), 1);
  EXPECT_EQ(parse_product_file(read_file(path()), path()).rows.size(), 3U);
}

TEST_F(ProductFiles, AFileIsReadAsItWasWritten) {
  ProductFile file;
  file.rows[row("8 8 8")] = algorithm(7);
  file.rows[row("9 9 9")] = {.words = {1, 2, 3, 4, 5, 6, 7, UINT64_MAX}, .relaxed = true};
  EXPECT_EQ(parse_product_file(to_json(file), "test"), file);
}

TEST_F(ProductFiles, WhatIsThereStays) {
  ProductFile mine, other;
  mine.rows[row("a")] = algorithm(1);
  other.rows[row("a")] = algorithm(2), other.rows[row("b")] = algorithm(3);
  EXPECT_EQ(add_to_file(path(), mine), mine);
  const ProductFile both = add_to_file(path(), other);
  EXPECT_EQ(both.rows.at(row("a")), algorithm(1));
  EXPECT_EQ(both.rows.at(row("b")), algorithm(3));
  ProductFile wrong;
  wrong.rows[row("a")] = algorithm(1);
  EXPECT_EQ(add_to_file(path(), other, wrong).rows.at(row("a")), algorithm(2));
}

// Eight processes at once, twenty rows each: none is lost, and nobody reads half a file.
TEST_F(ProductFiles, SeveralProcessesLoseNothing) {
  std::vector<pid_t> children;
  for (int p = 0; p < 8; ++p) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool whole = true;
      for (int i = 0; i < 20; ++i) {
        ProductFile one;
        one.rows[row(std::to_string(p) + " " + std::to_string(i))] = algorithm(static_cast<std::uint64_t>(i));
        try {
          whole = add_to_file(path(), one).rows.size() > static_cast<std::size_t>(i) && whole;
        } catch (const Error&) {
          whole = false;
        }
      }
      _exit(whole ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(parse_product_file(read_file(path()), path()).rows.size(), 160U);
}

// Processes on machines with files of their own: the first that knows a product is obeyed by all.
TEST_F(ProductFiles, AllProcessesOfARunTakeTheSame) {
  const OneProduct one({100, 200}), two({200, 100});
  ProductChoice first(one.runtime, path() + ".1"), second(two.runtime, path() + ".2");
  first.decide(0, {one.product}), second.decide(0, {two.product});
  EXPECT_NE(*first.of(one.product, 0), *second.of(two.product, 0));
  const std::vector<std::string> told = {first.text(), second.text()};
  first.adopt(told), second.adopt(told);
  EXPECT_EQ(first.of(one.product, 0)->words[1], 0U);
  EXPECT_EQ(*first.of(one.product, 0), *second.of(two.product, 0));
}

TEST(ProductFilePath, TheVariableTheCacheTheHome) {
  const auto path = [](const char* named, const char* cache, const char* home) {
    setenv("FORESHARD_PRODUCTS", named, 1), setenv("XDG_CACHE_HOME", cache, 1), setenv("HOME", home, 1);
    return product_file_path();
  };
  const std::string before[] = {getenv("HOME") ? getenv("HOME") : "", getenv("XDG_CACHE_HOME") ? getenv("XDG_CACHE_HOME") : ""};
  EXPECT_EQ(path("/a/b.json", "/c", "/h"), "/a/b.json");
  EXPECT_EQ(path("off", "/c", "/h"), "");
  EXPECT_EQ(path("", "/c", "/h"), "/c/foreshard/products.json");
  EXPECT_EQ(path("", "", "/h"), "/h/.cache/foreshard/products.json");
  EXPECT_EQ(path("", "", ""), "");
  setenv("HOME", before[0].c_str(), 1), setenv("XDG_CACHE_HOME", before[1].c_str(), 1), unsetenv("FORESHARD_PRODUCTS");
}

}  // namespace foreshard::gpu::product_choice_test
