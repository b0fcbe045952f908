// Generators: golden action lists, the table, refusals, text, picture.
#include "strategy/schedule/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>

#include "strategy/schedule/schedule_read.h"
#include "strategy/schedule/schedule_rules.h"
#include "tests/strategy/support_schedules.h"

namespace foreshard::schedule_test {

static ScheduleLists lists_of(Schedule id, ScheduleShape shape) {
  const ScheduleEntry& entry = schedule_entry(id);
  EXPECT_FALSE(entry.refuse(shape).has_value());
  return entry.lists(shape);
}

TEST(Schedule, OneFOneBFourRanksEightMicrobatches) {  // docs/schedules.md
  EXPECT_EQ(to_text(lists_of(Schedule::OneFOneB, {.p = 4, .m = 8})),
            "0F0 0F1 0F2 0F3 0B0 0F4 0B1 0F5 0B2 0F6 0B3 0F7 0B4 0B5 0B6 0B7\n"
            "1F0 1F1 1F2 1B0 1F3 1B1 1F4 1B2 1F5 1B3 1F6 1B4 1F7 1B5 1B6 1B7\n"
            "2F0 2F1 2B0 2F2 2B1 2F3 2B2 2F4 2B3 2F5 2B4 2F6 2B5 2F7 2B6 2B7\n"
            "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5 3F6 3B6 3F7 3B7\n");
}

TEST(Schedule, InterleavedTwoRanksTwoChunksFourMicrobatches) {
  EXPECT_EQ(to_text(lists_of(Schedule::Interleaved, {.p = 2, .m = 4, .v = 2})),
            "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3\n"
            "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3\n");
}

TEST(Schedule, InterleavedWarmUpCounts) {  // 2(p-1-r) + (v-1)p = 10, 8, 6, 4, and the F of the first pair
  const ScheduleLists lists = lists_of(Schedule::Interleaved, {.p = 4, .m = 8, .v = 2});
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const auto first_backward =
        std::find_if(lists[rank].begin(), lists[rank].end(), [](const ScheduleOp& op) { return op.work == Work::B; });
    EXPECT_EQ(first_backward - lists[rank].begin(), 10 - 2 * static_cast<int>(rank) + 1);
  }
}

TEST(Schedule, ZeroBubble) {  // docs/schedules.md
  EXPECT_EQ(to_text(lists_of(Schedule::ZeroBubbleV, {.p = 2, .m = 4, .v = 2})),
            "0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 3W3 0I2 0W2 0I3 0W3\n"
            "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 1W2 2W3 1W3\n");
  EXPECT_EQ(to_text(ScheduleLists{lists_of(Schedule::ZeroBubbleH1, {.p = 4, .m = 8})[2]}),
            "2F0 2F1 2I0 2F2 2I1 2F3 2I2 2W0 2F4 2I3 2W1 2F5 2I4 2W2 2F6 2I5 2W3 2F7 2I6 2W4 2I7 2W5 2W6 2W7\n");
  EXPECT_EQ(to_text(ScheduleLists{lists_of(Schedule::ZeroBubbleH2, {.p = 4, .m = 8})[3]}),
            "3F0 3I0 3F1 3I1 3F2 3I2 3F3 3I3 3F4 3I4 3F5 3I5 3F6 3I6 3W0 3F7 3I7 3W1 3W2 3W3 3W4 3W5 3W6 3W7\n");
}

TEST(Schedule, GPipeIsAllForwardsThenAllBackwards) {
  EXPECT_EQ(to_text(lists_of(Schedule::GPipe, {.p = 2, .m = 3})), "0F0 0F1 0F2 0B0 0B1 0B2\n1F0 1F1 1F2 1B0 1B1 1B2\n");
}

TEST(ScheduleTable, OneEntryPerName) {
  ASSERT_EQ(schedules().size(), schedule_names().size());
  for (const std::string& name : schedule_names()) {
    const ScheduleEntry* entry = find_schedule(name);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry, &schedule_entry(entry->id));
    EXPECT_EQ(name, name_of(entry->id));
    EXPECT_FALSE(entry->summary.empty());
  }
  EXPECT_EQ(find_schedule("2f2b"), nullptr);
}

TEST(ScheduleTable, StagesLiveWhereTheTableSays) {
  for (const ScheduleCase& c : all_schedule_cases())
    for (std::size_t rank = 0; rank < c.lists.size(); ++rank)
      for (const ScheduleOp& op : c.lists[rank])
        ASSERT_EQ(rank_of_stage(c.entry->id, op.stage, c.shape.p), static_cast<int>(rank)) << c.name();
}

static std::string refusal(Schedule id, ScheduleShape shape) {
  const auto refused = schedule_entry(id).refuse(shape);
  if (!refused) return "accepted";
  return refused->reason + (refused->would_help.empty() ? "" : " | " + refused->would_help.front());
}

TEST(ScheduleRefusal, NamesTheNumbers) {
  EXPECT_EQ(refusal(Schedule::OneFOneB, {.p = 4, .m = 8, .v = 2}),
            "schedule 1f1b takes one virtual stage per rank, found 2 | --schedule interleaved-1f1b");
  EXPECT_EQ(refusal(Schedule::GPipe, {.p = 4, .m = 8, .v = 3}),
            "schedule gpipe takes one virtual stage per rank, found 3 | --schedule interleaved-1f1b");
  EXPECT_EQ(refusal(Schedule::Interleaved, {.p = 4, .m = 8}),
            "schedule interleaved-1f1b needs at least 2 virtual stages per rank, found 1 | --virtual-stages 2");
  EXPECT_EQ(refusal(Schedule::Interleaved, {.p = 4, .m = 3, .v = 2}),
            "schedule interleaved-1f1b with groups of 4 micro-batches needs at least 4 micro-batches, found 3 | a larger "
            "--global-batch");
  EXPECT_EQ(refusal(Schedule::Interleaved, {.p = 4, .m = 8, .v = 2, .g = 2}),
            "schedule interleaved-1f1b needs groups of at least 4 micro-batches (the pipeline ranks), found 2 | --set "
            "microbatch_group=4");
  EXPECT_EQ(refusal(Schedule::Interleaved, {.p = 4, .m = 10, .v = 2}),
            "schedule interleaved-1f1b cannot end with a group of 2 micro-batches on 4 pipeline ranks (10 micro-batches in "
            "groups of 4) | 8 or 12 micro-batches");
  EXPECT_EQ(refusal(Schedule::Interleaved, {.p = 4, .m = 10, .v = 2, .g = 5}), "accepted");
  EXPECT_EQ(refusal(Schedule::Interleaved, {.p = 4, .m = 10, .v = 2, .g = 6}), "accepted");  // the last group has 4 = p
  EXPECT_EQ(refusal(Schedule::OneFOneB, {.p = 4, .m = 1}), "accepted");
}

TEST(ScheduleRefusal, SizesThatCannotBe) {
  for (const ScheduleEntry& entry : schedules()) {
    EXPECT_EQ(refusal(entry.id, {.p = 0, .m = 8}), "a pipeline needs at least one rank, found 0");
    EXPECT_EQ(refusal(entry.id, {.p = 4, .m = 0}), "a pipeline needs at least one micro-batch, found 0");
    EXPECT_EQ(refusal(entry.id, {.p = 4, .m = 8, .v = -1}), "a pipeline needs at least one virtual stage per rank, found -1");
    EXPECT_EQ(refusal(entry.id, {.p = 1000, .m = 2'000'000'000}),
              "2,000,000,000 micro-batches on 1,000 pipeline ranks with 1 virtual stages each are more than 20 million "
              "actions | a larger --micro-batch");
  }
}

TEST(ScheduleText, ReadsBackEqual) {
  for (const ScheduleCase& c : all_schedule_cases()) ASSERT_EQ(parse_schedule_text(to_text(c.lists)), c.lists) << c.name();
}

TEST(ScheduleText, TakesSplitBackwardsCommentsAndBlankLines) {
  const ScheduleLists lists = parse_schedule_text("# zero bubble, one rank\n\n0F0 0I0  0W0\r\n");
  EXPECT_EQ(lists, (ScheduleLists{{{Work::F, 0, 0}, {Work::I, 0, 0}, {Work::W, 0, 0}}}));
}

static std::string text_error(const std::string& text) {
  try {
    parse_schedule_text(text, "s.csv");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ScheduleText, MistakesAreNamed) {
  const std::string expected = ", expected <stage><F, B, I or W><micro-batch>, such as 2F0";
  for (const std::string word : {"F0", "0X0", "0F", "0F0x", "-1F0", "0F-1", "0", "99999999999F0", "0f0"})
    EXPECT_EQ(text_error("0F0\n" + word + "\n"), "s.csv: line 2: found \"" + word + "\"" + expected);
  EXPECT_EQ(text_error(""), "s.csv: found no action, expected one line of actions per pipeline rank");
  EXPECT_EQ(text_error("0F0 0F0\n"),
            "s.csv: stage 0, micro-batch 0: found 2 F, 0 B, 0 I, 0 W, expected one F and either one B "
            "or one I and one W");
  EXPECT_EQ(text_error("0F0 0B0 0W0\n"),
            "s.csv: stage 0, micro-batch 0: found 1 F, 1 B, 0 I, 1 W, expected one F and either "
            "one B or one I and one W");
  EXPECT_EQ(text_error("0F0 0B0\n0F1 0B1\n"), "s.csv: stage 0: found on ranks 0 and 1, expected one rank per stage");
  EXPECT_EQ(text_error("0F0 0B0 1000000F0\n"),
            "s.csv: found 3 actions, expected at least 2 for each of 1,000,001 stages and 1 micro-batch");
}

TEST(ScheduleText, ACellIsAForwardAndABackwardOfSomethingElse) {
  const std::string text = "0F0 0F1&0I0&0W0 0I1 0F2&0W1 0B2\n";
  const ScheduleLists lists = parse_schedule_text("0F0 0F1&0I0&0W0 0I1 0F2&0W1 0B2\n");
  EXPECT_EQ(lists[0][1], (ScheduleOp{Work::F, 0, 1, true}));
  EXPECT_EQ(lists[0][2], (ScheduleOp{Work::I, 0, 0, true}));
  EXPECT_EQ(lists[0][3], (ScheduleOp{Work::W, 0, 0, false}));
  EXPECT_EQ(to_text(lists), text);
  for (const std::string cell :
       {"0F1&0F0", "0I0&0W0", "0F0&0I0", "0F1&0I0&0W2", "0F1&0W0&0I0", "0F1&0B0&0B2", "0F1&0I0&0W0&0F2"})
    EXPECT_NE(text_error(cell + "\n").find("expected a forward and a backward, or both halves of one"), std::string::npos)
        << cell;
}

TEST(ScheduleText, AnyBytesAreListsOrAnError) {
  std::mt19937_64 random(11);
  const std::string good = to_text(lists_of(Schedule::OneFOneB, {.p = 3, .m = 4}));
  const std::string alphabet = "0123456789FBIW ,\n-x";
  int read = 0, refused = 0;
  for (int k = 0; k < 3000; ++k) {
    std::string text = good;
    for (auto edits = random() % 3; edits-- > 0;) text[random() % text.size()] = alphabet[random() % alphabet.size()];
    try {
      const ScheduleLists lists = parse_schedule_text(text);
      evaluate<std::int64_t>(lists, equal_times<std::int64_t>(100, 1, 1, 1));  // a time or a deadlock
      ++read;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(read, 500);
  EXPECT_GT(refused, 500);
}

TEST(ScheduleEvaluate, SplitBackwardsByHand) {
  // F = 2, I = 3, W = 5, transfer 1. Rank 0: F 0-2. Rank 1: F 3-5, I 5-8, W 8-13. Rank 0: I 9-12, W 12-17.
  const ScheduleLists lists = parse_schedule_text("0F0 0I0 0W0\n1F0 1I0 1W0\n");
  const auto timing = evaluate(lists, equal_times<std::int64_t>(2, 2, 3, 5, 1));
  ASSERT_TRUE(timing.has_value());
  EXPECT_EQ(timing->begin, (std::vector<std::vector<std::int64_t>>{{0, 9, 12}, {3, 5, 8}}));
  EXPECT_EQ(timing->end, (std::vector<std::vector<std::int64_t>>{{2, 12, 17}, {5, 8, 13}}));
  EXPECT_EQ(timing->makespan, 17);
  EXPECT_EQ(timing->idle, (std::vector<std::int64_t>{7, 7}));
}

// F = I = W = 1. Rank 0: F 0-1. Rank 1: F 1-2, I 2-3, W 3-4. The cell of rank 0 waits for that I: 3-6. Rank 1 with what it forwards: F 6-7,
// I 7-8, W 8-9. Rank 0: I 8-9, W 9-10. With 1 saved, the cell is 3-5.
TEST(ScheduleEvaluate, ACellOfThreeActionsIsOne) {
  const ScheduleLists lists = parse_schedule_text("0F0 0F1&0I0&0W0 0I1 0W1\n1F0 1I0 1W0 1F1 1I1 1W1\n");
  auto times = equal_times<std::int64_t>(2, 1, 1, 1);
  const auto timing = evaluate(lists, times);
  ASSERT_TRUE(timing.has_value());
  EXPECT_EQ(timing->begin, (std::vector<std::vector<std::int64_t>>{{0, 3, 3, 3, 8, 9}, {1, 2, 3, 6, 7, 8}}));
  EXPECT_EQ(timing->end, (std::vector<std::vector<std::int64_t>>{{1, 6, 6, 6, 9, 10}, {2, 3, 4, 7, 8, 9}}));
  EXPECT_EQ(timing->makespan, 10);
  EXPECT_EQ(timing->idle, (std::vector<std::int64_t>{4, 4}));
  times.saved = 1;
  EXPECT_EQ(evaluate(lists, times)->makespan, 9);
  EXPECT_EQ(evaluate(lists, times)->idle, (std::vector<std::int64_t>{4, 3}));
  EXPECT_EQ(draw(lists, *evaluate<double>(lists, equal_times<double>(2, 1, 1, 1)), 50),
            "r0  0>>>........1>>>0<<<0www........1<<<1www\n"
            "r1  ....0>>>0<<<0www........1>>>1<<<1www....\n"
            "> forward  < input gradient  w weight gradient  . idle  number: micro-batch\n");
}

TEST(ScheduleEvaluate, InFlightEndsWithTheWeightGradient) {
  EXPECT_EQ(peak_in_flight(parse_schedule_text("0F0 0I0 0F1 0W0 0I1 0W1\n")), (std::vector<int>{2}));
  EXPECT_EQ(peak_in_flight(parse_schedule_text("0F0 0I0 0W0 0F1 0I1 0W1\n")), (std::vector<int>{1}));
}

TEST(ScheduleDraw, ToScaleWithALegend) {  // F = 1, B = 2: two columns per unit, 15 units
  const auto lists = lists_of(Schedule::OneFOneB, {.p = 2, .m = 4});
  const auto timing = evaluate<double>(lists, equal_times<double>(2, 1, 1, 1));
  ASSERT_TRUE(timing.has_value());
  EXPECT_EQ(draw(lists, *timing, 40),
            "r0  0>1>....0<<<2>1<<<3>2<<<..3<<<\n"
            "r1  ..0>0<<<1>1<<<2>2<<<3>3<<<....\n"
            "> forward  < backward  . idle  number: micro-batch\n");
}

TEST(ScheduleDraw, LettersNameTheChunks) {  // (m v + p - 1)(F + B) = 15 units of 4 columns
  const auto lists = lists_of(Schedule::Interleaved, {.p = 2, .m = 2, .v = 2});
  const auto timing = evaluate<double>(lists, equal_times<double>(4, 1, 1, 1));
  ASSERT_TRUE(timing.has_value());
  EXPECT_EQ(draw(lists, *timing, 64),
            "r0  0a>>1a>>0b>>1b>>........0b<<<<<<....1b<<<<<<0a<<<<<<1a<<<<<<\n"
            "r1  ....0a>>1a>>0b>>0b<<<<<<1b>>1b<<<<<<0a<<<<<<1a<<<<<<........\n"
            "> forward  < backward  . idle  number: micro-batch  letter: chunk\n");
}

TEST(ScheduleDraw, SplitBackwards) {
  const ScheduleLists lists = parse_schedule_text("0F0 0F1 0I0 0W0 0I1 0W1\n");
  const auto timing = evaluate<double>(lists, equal_times<double>(1, 1, 1, 1));
  EXPECT_EQ(draw(lists, *timing, 80),
            "r0  0>>>1>>>0<<<0www1<<<1www\n"
            "> forward  < input gradient  w weight gradient  . idle  number: micro-batch\n");
}

// Rows have one width within the limit, and idle columns are the idle time where the scale is whole.
TEST(ScheduleDraw, FitsAndCountsIdleColumns) {
  for (const ScheduleCase& c : all_schedule_cases()) {
    auto times = equal_times<double>(c.stages(), 1, 1, 1);
    times.routes = c.routes();
    const auto timing = evaluate<double>(c.lists, times);
    std::istringstream picture(draw(c.lists, *timing, 100));
    std::string row;
    const auto busy = [](char ch) { return ch != '.'; };
    for (int rank = 0; rank < c.shape.p; ++rank) {
      ASSERT_TRUE(std::getline(picture, row));
      ASSERT_LE(row.size(), 100u) << c.name();
      const std::string cells = row.substr(4);
      const double scale = static_cast<double>(cells.size()) / timing->makespan;
      if (scale != std::floor(scale)) continue;
      const auto busy_columns = std::count_if(cells.begin(), cells.end(), busy);
      ASSERT_EQ(static_cast<double>(busy_columns), 3 * c.shape.m * c.shape.v * scale) << c.name();
    }
    ASSERT_TRUE(std::getline(picture, row));
    EXPECT_EQ(row.rfind("> forward", 0), 0u);
  }
}

TEST(ScheduleDraw, TheDocumentShowsWhatIsDrawn) {
  std::ifstream file(std::string(FORESHARD_SOURCE) + "/docs/schedules.md");
  const std::string document((std::istreambuf_iterator<char>(file)), {});
  struct Picture {
    Schedule id;
    ScheduleShape shape;
    double latency;
  };
  for (const Picture& picture : {Picture{Schedule::GPipe, {4, 8, 1}, 0}, Picture{Schedule::OneFOneB, {4, 8, 1}, 0},
                                 Picture{Schedule::OneFOneB, {4, 8, 1}, 0.5}, Picture{Schedule::Interleaved, {2, 4, 2}, 0},
                                 Picture{Schedule::Interleaved, {4, 8, 2}, 0}, Picture{Schedule::ZeroBubbleH1, {4, 8, 1}, 0},
                                 Picture{Schedule::ZeroBubbleH2, {4, 8, 1}, 0}, Picture{Schedule::ZeroBubble2p, {4, 8, 1}, 0},
                                 Picture{Schedule::ZeroBubbleV, {4, 8, 2}, 0}, Picture{Schedule::LoopedBfs, {2, 4, 2}, 0},
                                 Picture{Schedule::InterleavedZeroBubble, {2, 4, 2}, 0}, Picture{Schedule::VHalf, {4, 8, 2}, 0},
                                 Picture{Schedule::VMin, {4, 8, 2}, 0}, Picture{Schedule::Chimera, {4, 4, 1}, 0},
                                 Picture{Schedule::DualPipe, {4, 8, 1}, 0}}) {
    const ScheduleLists lists = lists_of(picture.id, picture.shape);
    const int routes = schedule_entry(picture.id).routes, chunks = picture.shape.v;
    const double share = 1.0 / chunks;  // of a rank's work; the pictures without latency do not change with it
    auto times = equal_times<double>(picture.shape.p * chunks * routes, share, share, share, picture.latency);
    times.routes = routes;
    const auto timing = evaluate<double>(lists, times);
    std::istringstream rows(draw(lists, *timing));
    std::string indented;
    for (std::string row; std::getline(rows, row);) indented += "    " + row + "\n";
    EXPECT_NE(document.find("\n\n" + indented), std::string::npos) << indented;
  }
}

TEST(ScheduleDraw, NothingToDraw) {  // durations of zero
  const auto lists = lists_of(Schedule::OneFOneB, {.p = 2, .m = 2});
  const auto timing = evaluate<double>(lists, equal_times<double>(2, 0, 0, 0));
  EXPECT_EQ(draw(lists, *timing), "r0  \nr1  \n> forward  < backward  . idle  number: micro-batch\n");
}

// Two ranks, GPipe, three micro-batches, F = 1, B = 2, transfers of 3 that occupy the way. Inputs arrive at 4, 7 and 10, so rank 1
// ends its forwards at 11 and its backwards at 13, 15, 17; gradients arrive at 16, 19 and 22, and rank 0 ends at 24. Where they
// occupy nothing: inputs at 4, 5, 6, gradients at 12, 14, 16, end at 18.
TEST(Schedule, TransfersThatOccupyTheWayTakeTurns) {
  const ScheduleLists lists = schedule_entry(Schedule::GPipe).lists({.p = 2, .m = 3});
  auto times = equal_times<std::int64_t>(2, 1, 2, 0, 3);
  EXPECT_EQ(evaluate(lists, times)->makespan, 18);
  times.in_turn = true;
  EXPECT_EQ(evaluate(lists, times)->makespan, 24);
  times.latency = 1;  // as long as the shortest action: nobody is in the way, and the two ends differ by 2 (p - 1) c
  EXPECT_EQ(evaluate(lists, times)->makespan, (3 + 2 - 1) * 3 + 2);
  times.hops = {3, 7};  // the last stage sends to nobody
  EXPECT_EQ(evaluate(lists, times)->makespan, 24);
}

}  // namespace foreshard::schedule_test
