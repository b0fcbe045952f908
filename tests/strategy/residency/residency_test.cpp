#include "strategy/residency/residency.h"

#include <gtest/gtest.h>

#include <functional>

namespace foreshard::residency_test {

namespace {

const std::vector<ParameterUnit> kUnits = {{"a", 10}, {"b", 20}, {"c", 40}};

// The picture of the header: a stays for the whole step, b comes twice, c stays from its forward to its backward.
Residency picture() { return {.stays = {{1, 0, 1, 1}, {0, 0, 0, 5}, {2, 1, 2, 3}, {1, 3, 4, 4}}}; }

}  // namespace

TEST(Residency, StepOrderRecomputesARangeBeforeItsFirstBackward) {
  using enum Phase;
  EXPECT_EQ(step_order(2), (std::vector<UnitUse>{{0, Forward}, {1, Forward}, {1, Backward}, {0, Backward}}));
  EXPECT_EQ(step_order(4, {{0, 0}, {1, 2}}), (std::vector<UnitUse>{{0, Forward},
                                                                   {1, Forward},
                                                                   {2, Forward},
                                                                   {3, Forward},
                                                                   {3, Backward},
                                                                   {1, Recompute},
                                                                   {2, Recompute},
                                                                   {2, Backward},
                                                                   {1, Backward},
                                                                   {0, Recompute},
                                                                   {0, Backward}}));
}

TEST(Residency, CurveAndSumsFollowTheStays) {
  const std::vector<UnitUse> uses = step_order(3);
  const Residency residency = picture();
  EXPECT_EQ(residency_fault(kUnits, uses, residency), "");
  // Moments: a b; a b c; a c; a b c; a b; a.
  EXPECT_EQ(resident_elements(kUnits, uses, residency), (ElementCurve{30, 70, 50, 70, 30, 10}));
  EXPECT_EQ(peak_elements(kUnits, uses, residency), 70);
  EXPECT_EQ(brought_elements(kUnits, residency), 10 + 2 * 20 + 40);
}

// Moments a b c c b a; the stays are b, a, c, b.
TEST(Residency, UsesFallIntoStays) {
  EXPECT_EQ(stays_of_uses(step_order(3), picture()), (std::vector<int>{1, 0, 2, 2, 3, 1}));
  Residency residency = picture();
  residency.stays.erase(residency.stays.begin() + 1);
  residency.persistent = {0};
  EXPECT_EQ(stays_of_uses(step_order(3), residency), (std::vector<int>{-1, 0, 1, 1, 2, -1}));
}

TEST(Residency, WhatWasThereBeforeIsNotBroughtAndWhatStaysIsStillThere) {
  const std::vector<UnitUse> uses = step_order(1);
  const Residency residency = {.stays = {{0, Stay::kBeforeStep, 0, 2}}};
  EXPECT_EQ(residency_fault({{"a", 10}}, uses, residency), "");
  EXPECT_EQ(resident_elements({{"a", 10}}, uses, residency), (ElementCurve{10, 10}));
  EXPECT_EQ(brought_elements({{"a", 10}}, residency), 0);
}

TEST(Residency, BuffersAddTheirOwnBytes) {
  const std::vector<UnitUse> uses = step_order(1);
  const Residency residency = {.stays = {{0, 0, 0, 1}},
                               .buffers = {{0, UnitBuffer::Kind::Staging, 0, 0},
                                           {0, UnitBuffer::Kind::Gradient, 1, 1},
                                           {0, UnitBuffer::Kind::ReductionInput, 1, 2}}};
  // 10 elements: parameters 2 + staging 2; parameters 2 + gradient 3 + input of the reduction 4.
  EXPECT_EQ(resident_bytes({{"a", 10}}, uses, residency, {.gradient = 3}), (std::vector<Bytes>{{40}, {90}}));
  EXPECT_EQ(peak_bytes({{"a", 10}}, uses, residency, {.gradient = 3}), Bytes{90});
}

TEST(Residency, FaultsAreFound) {
  const std::vector<UnitUse> uses = step_order(3);
  const auto fault = [&](const std::function<void(Residency&)>& change) {
    Residency residency = picture();
    change(residency);
    return residency_fault(kUnits, uses, residency);
  };
  EXPECT_EQ(fault([](Residency& r) { r.stays[3].released_after = 3, r.stays[3].first_use = 3; }),
            "b: a stay's first use is none");
  EXPECT_EQ(fault([](Residency& r) { r.stays.pop_back(); }), "b: used while it is not there");
  EXPECT_EQ(fault([](Residency& r) { r.stays[0].released_after = 3; }), "b: two stays overlap");
  EXPECT_EQ(fault([](Residency& r) { r.stays[2].released_after = 1; }), "c: a stay ends before it begins");
  EXPECT_EQ(fault([](Residency& r) { r.stays[1].released_after = 7; }), "a: a stay ends before it begins");
  EXPECT_EQ(fault([](Residency& r) { std::swap(r.stays[2], r.stays[3]); }), "c: its transfer is not in order");
  EXPECT_EQ(fault([](Residency& r) { r.stays[1].first_use = 5; }), "a: a stay's first use is none");
  EXPECT_EQ(fault([](Residency& r) { r.persistent = {0}; }), "a: persistent, and has a stay");
  EXPECT_EQ(fault([](Residency& r) { r.stays.erase(r.stays.begin() + 1), r.persistent = {0}; }), "");
  EXPECT_EQ(fault([](Residency& r) { r.buffers = {{0, UnitBuffer::Kind::Gradient, 4, 7}}; }), "a buffer outside of the step");
  EXPECT_EQ(fault([](Residency& r) { r.stays[0].unit = 3; }), "a stay of no unit");
  EXPECT_EQ(fault([](Residency& r) { r.persistent = {3}; }), "a persistent unit that is none");
}

}  // namespace foreshard::residency_test
