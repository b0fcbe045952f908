// Machine profiles on the command line: the option --profile FILE, the text that `calibrate` prints, and the cluster file of this
// host.
#pragma once

#include <optional>
#include <string>

#include "cli/program/verb.h"
#include "core/cluster/cluster.h"
#include "core/profile/machine_profile.h"

namespace foreshard {

VerbOption profile_option();
// The profile of --profile, empty without it. Throws Error when the cluster has no device of the profile's kind.
std::optional<MachineProfile> read_profile(const Cluster& cluster, const Arguments& arguments);

// The machine as learned profiles name it: GPU, GPUs per node, and the rates of links and network; not the number of nodes.
std::string machine_words(const Cluster& cluster);
// Throws Error when the profile was learned from runs, and none of them was of `framework`. `file`: the profile, for the message.
void check_framework(const MachineProfile& profile, const std::string& framework, const std::string& file);
// A note when the profile was learned on a machine with other links than the cluster's; "" otherwise.
std::string profile_note(const MachineProfile& profile, const Cluster& cluster);

// The cluster file of this host: one node with `ranks` devices. Rates are the profile's, nominal ones where it has none.
std::string host_cluster_text(const MachineProfile& profile, int ranks);
std::string profile_text(const MachineProfile& profile);

}  // namespace foreshard
