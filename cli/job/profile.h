// Machine profiles on the command line: --profile FILE, what calibrate prints, and the cluster file of this host.
#pragma once

#include <optional>
#include <string>

#include "cli/program/verb.h"
#include "core/cluster/cluster.h"
#include "core/profile/machine_profile.h"

namespace foreshard {

VerbOption profile_option();
// Throws Error when the cluster has no device that the profile is about.
std::optional<MachineProfile> read_profile(const Cluster& cluster, const Arguments& arguments);

// A cluster as learned profiles name it: what its GPUs are joined by, whatever their number.
std::string machine_words(const Cluster& cluster);
// Refuses a profile that learned from runs of other frameworks only: throws Error.
void check_framework(const MachineProfile& profile, const std::string& framework, const std::string& file);
// One line that says so where a profile learned on other links than the cluster has; "" otherwise.
std::string profile_note(const MachineProfile& profile, const Cluster& cluster);

// A node of `ranks` devices, joined by the links of the profile; nominal rates where the profile is empty.
std::string host_cluster_text(const MachineProfile& profile, int ranks);
std::string profile_text(const MachineProfile& profile);

}  // namespace foreshard
