#include "exec/mesh/process_place.h"

#include <gtest/gtest.h>

#include <map>

#include "core/base/error.h"

namespace foreshard::process_place_test {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<ProcessPlace> place(const Variables& variables) {
  return process_place([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(ProcessPlace, EveryLauncherIsUnderstood) {
  EXPECT_EQ(place({}), std::nullopt);
  EXPECT_EQ(place({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "1234"}}),
            (ProcessPlace{1, 4, "10.0.0.1", 1234}));
  EXPECT_EQ(place({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "3"}}), (ProcessPlace{2, 3, "127.0.0.1", 29500}));
  EXPECT_EQ(place({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}), (ProcessPlace{0, 2, "127.0.0.1", 29500}));
  EXPECT_EQ(place({{"SLURM_PROCID", "7"}, {"SLURM_NTASKS", "8"}, {"SLURM_LAUNCH_NODE_IPADDR", "10.1.1.1"}}),
            (ProcessPlace{7, 8, "10.1.1.1", 29500}));
  // The GPU of a process follows from its place on its machine.
  EXPECT_EQ(place({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}})->local, 1);
  EXPECT_EQ(place({{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "2"}})->local, 2);
  // torchrun inside a Slurm job: torchrun counts.
  EXPECT_EQ(place({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}})->process, 1);
}

// torchrun's agent listens at MASTER_PORT itself when it says so; FORESHARD_PORT is what a person wants.
TEST(ProcessPlace, ThePortIsOneThatIsFree) {
  Variables torch = {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_PORT", "1234"}, {"TORCHELASTIC_USE_AGENT_STORE", "False"}};
  EXPECT_EQ(place(torch)->port, 1234);
  torch["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_EQ(place(torch)->port, 1235);
  torch["MASTER_PORT"] = "65535";
  EXPECT_EQ(place(torch)->port, 65534);
  torch["FORESHARD_PORT"] = "99";
  EXPECT_EQ(place(torch)->port, 99);
}

TEST(ProcessPlace, OneProcessOrHalfAPairIsNone) {
  EXPECT_EQ(place({{"RANK", "0"}, {"WORLD_SIZE", "1"}}), std::nullopt);
  EXPECT_EQ(place({{"RANK", "0"}}), std::nullopt);
}

std::string token(const Variables& variables) {
  return job_token([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

// The word that a person chose, else the number that the launcher gave the job; hashed, so that nobody reads it on the way.
TEST(ProcessPlace, AJobIsToldByItsLauncher) {
  const Variables slurm = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "0"}};
  Variables next_step = slurm, named = slurm;
  next_step["SLURM_STEP_ID"] = "1", named["FORESHARD_JOB"] = "mine";
  EXPECT_EQ(token({}), "");
  EXPECT_EQ(token({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), "");
  EXPECT_EQ(token(slurm).size(), 16U);
  EXPECT_NE(token(slurm), token(next_step));
  EXPECT_EQ(token(named), token({{"FORESHARD_JOB", "mine"}}));
  EXPECT_EQ(token(named).find("mine"), std::string::npos);
  EXPECT_NE(token({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_NAMESPACE", "123"}}), "");
  EXPECT_NE(token({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TORCHELASTIC_RUN_ID", "a"}}), "");
}

std::string message(const Variables& variables) {
  try {
    place(variables);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ProcessPlace, WrongNumbersAreTold) {
  EXPECT_EQ(message({{"RANK", "4"}, {"WORLD_SIZE", "4"}}),
            "environment: RANK: found \"4\", expected a whole number from 0 to 3");
  EXPECT_EQ(message({{"RANK", "0"}, {"WORLD_SIZE", "two"}}),
            "environment: WORLD_SIZE: found \"two\", expected a whole number from 1 to 65536");
  EXPECT_EQ(message({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "70000"}}),
            "environment: MASTER_PORT: found \"70000\", expected a whole number from 1 to 65535");
}

}  // namespace
}  // namespace foreshard::process_place_test
