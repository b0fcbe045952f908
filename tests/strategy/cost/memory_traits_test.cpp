// The "memory" object of frameworks/*.json, and what flags of a command line change of it.
#include "strategy/cost/memory_traits.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/changed_text.h"

namespace foreshard::memory_traits_test {
namespace {

MemoryTraits read(const std::string& text) { return read_memory_traits(JsonReader::parse(text, "f.json")); }

std::string message(const std::string& text) {
  return error_of([&] { read(text); });
}

}  // namespace

TEST(MemoryTraitsOfFile, EveryKeySetsItsField) {
  const MemoryTraits traits = read(R"({
    "source": "x.py", "workspaces": {"cuBLAS": {"hopper": "32 MiB", "any": "8 MiB"}},
    "caching_allocator": true, "attention_mask": true, "boundaries_left": 1, "boundaries": 2, "interleaved_boundaries": 3,
    "attention_copies": ["ampere"], "zero1": {"whole": 2, "shared": 4}, "fp8_parameters": true, "fp8_inputs": true,
    "half_main_gradients": true, "precision_aware": true, "reports_unit": "GB", "score_buffer": 1.5, "norm_bytes": 2.5, "activation_bytes": 3.5, "score_bytes": 4.5,
    "score_scratch": 5.5, "query_key_bytes": 6.5, "key_value_bytes": 6.25, "remakes_attention": true, "logit_bytes": 7.5, "gathered_logit_bytes": 8.5,
    "held_logit_bytes": 9.5, "buffered_logits": 2, "logit_chunks": "chunks", "logit_parts_by_width": true, "reports": "reserved",
    "fragmentation": 1.25, "context": "1 GiB", "flags": {"plain": {"logit_bytes": 2, "deferred_heads": 3, "precision_aware": true}}})");
  const MemoryTraits expected{
      .workspaces = {{"cuBLAS", {{"hopper", {32 << 20}}, {"any", {8 << 20}}}}},
      .caching_allocator = true,
      .attention_mask = true,
      .boundaries_left = 1,
      .boundaries = 2,
      .interleaved_boundaries = 3,
      .attention_copies = {"ampere"},
      .zero1 = Zero1Memory{2, 4},
      .fp8_parameters = true,
      .fp8_inputs = true,
      .optimizer = {.half_main_gradients = true, .precision_aware = true},
      .norm_bytes = 2.5,
      .activation_bytes = 3.5,
      .scores = {1.5, 4.5, 5.5},
      .projections = {.query_key = 6.5, .key_value = 6.25},
      .remakes_attention = true,
      .logits =
          {.bytes = 7.5, .gathered_bytes = 8.5, .chunks = "chunks", .parts_by_width = true, .held_bytes = 9.5, .buffered = 2},
      .reports = {.reserved = true, .decimal = true},
      .fragmentation = 1.25,
      .context = Bytes{1 << 30},
      .flags = {{.flag = "plain", .logit_bytes = 2, .deferred_heads = 3, .precision_aware = true}}};
  EXPECT_EQ(traits, expected);
  EXPECT_EQ(read("{}"), MemoryTraits{});
}

TEST(MemoryTraitsOfFile, WhatIsWrongIsRefused) {
  EXPECT_NE(message(R"({"logit_byte": 4})").find("logit_byte"), std::string::npos);
  EXPECT_NE(message(R"({"workspaces": {"cuBLAS": {"turing": "1 MiB"}}})").find("turing"), std::string::npos);
  EXPECT_NE(message(R"({"fragmentation": 0.5})").find("fragmentation"), std::string::npos);
  EXPECT_NE(message(R"({"flags": {"a": {"norm_bytes": 1}}})").find("norm_bytes"), std::string::npos);
}

TEST(MemoryTraitsOfFile, FlagsChangeWhatTheyName) {
  MemoryTraits traits = read(R"({"workspaces": {"cuBLAS": {"any": "8 MiB"}, "TE": {"any": "1 MiB"}}, "logit_bytes": 6,
    "flags": {"plain": {"workspaces": {"TE": {"any": "0 MiB"}}, "score_bytes": 4, "precision_aware": true}, "other": {"logit_bytes": 2}}})");
  MemoryTraits expected = traits;
  expected.flags.clear();
  EXPECT_EQ(with_flags(traits, ""), expected);
  expected.workspaces["TE"] = {{"any", {}}}, expected.scores.kept = 4, expected.optimizer.precision_aware = true;
  EXPECT_EQ(with_flags(traits, "--seed 1 --plain"), expected);
  expected.logits.bytes = 2;
  EXPECT_EQ(with_flags(traits, "--other --plain --seed 1"), expected);
}

// A longer flag that begins alike is another one.
TEST(MemoryTraitsOfFile, FlagsAreWholeWords) {
  const MemoryTraits traits = read(R"({"flags": {"plain": {"score_bytes": 4}, "impl local": {"logit_bytes": 2}}})");
  EXPECT_EQ(with_flags(traits, "--plain-cache").scores.kept, 0);
  EXPECT_EQ(with_flags(traits, "--impl locally").logits.bytes, 6);
  EXPECT_EQ(with_flags(traits, "--impl local --plain").logits.bytes, 2);
}

// The value of the flag that the framework names is the number of parts.
TEST(MemoryTraitsOfFile, ChunksOfTheLogits) {
  const MemoryTraits traits = read(R"({"logit_chunks": "loss-chunks"})");
  EXPECT_EQ(with_flags(traits, "--loss-chunks 8 --seed 1").logits.parts, 8);
  EXPECT_EQ(with_flags(traits, "--loss-chunks 0").logits.parts, 1);
  EXPECT_EQ(with_flags(traits, "--seed 1").logits.parts, 1);
}

}  // namespace foreshard::memory_traits_test
