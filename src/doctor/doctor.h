// `starling doctor`: what a training needs of machines, disks, text and the network, examined in seconds, with a mend for what is amiss.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/world.h"
#include "settings/config.h"

namespace starling {

enum class Level : uint8_t { fine, note, problem };  // a note: it works, but may surprise

struct Finding {
  Level level;
  std::string what;
  std::string mend;  // of notes and problems: what to do
};
struct Examined {
  std::string topic;
  std::vector<Finding> findings;
};

// Processor, cores, load, memory, limits of the process, cards.
Examined examine_machine();
// The disk of a directory (or of the nearest parent that exists): room for checkpoints of this many bytes each, speed, and what fsync
// takes. Writes 64 MiB into a file that is removed again. checkpoints: how many are there at once; 0 bytes: unknown; key: what names the
// directory.
Examined examine_disk(const std::string& directory, int64_t checkpoint_bytes, int64_t checkpoints, const std::string& key = "train.output");
// The disk of the run, then that of checkpoint.second-directory, if there is one, and whether it is another disk.
std::vector<Examined> examine_disks(const Config& config);
// The first 2,000 pairs of each corpus and validation text, 200 lines from random places of plain files, and `archive_bytes` of text from
// the beginning of archives; and whether pairs of the validation text stand in the corpora too, as far as these are read in two seconds
// each.
Examined examine_texts(const Config& config, int64_t archive_bytes = 64 << 20);
// Whether the files of corpora and validation texts can be read here.
Examined examine_text_files(const Config& config);

// What another host than rank 0's needs: its machine, room for tokens on the disk of the run, and the files of the text. complaint: why its
// configuration cannot be read, or "".
std::vector<Examined> examine_other_host(const Config& config, const std::string& complaint);
// Returns on rank 0 what the first ranks of the other hosts have found, each finding once with the hosts that have it, else nothing.
// Collective.
std::vector<Examined> gather_findings(Communicator& comm, const std::vector<Examined>& own);

constexpr const char* kRanksTopic = "ranks";
// Whether messages pass between every two hosts, then their versions. Collective; ranks other than 0 get no findings. Throws PeerError on
// ranks that another host does not answer.
Examined examine_ranks(World& world);
// Clocks, latency and bandwidth between at most `most_pairs` pairs of hosts. Collective; ranks other than 0 get no findings.
Examined examine_links(World& world, int64_t most_pairs = 64);
// Returns the first rank of each host.
std::vector<int> first_ranks(const Communicator& comm);

// Returns the bytes of a checkpoint of the model that a configuration describes, with the vocabulary's planned size.
int64_t checkpoint_bytes(const Config& config);

// Returns the findings as lines for people, to be pasted into a report.
std::string findings_text(const Examined& examined);
// Returns how many findings are of a level.
int64_t count(const std::vector<Examined>& all, Level level);

}  // namespace starling
