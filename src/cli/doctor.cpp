// The verb `starling doctor`: what a training needs, examined (docs/guides/doctor.md).
#include "doctor/doctor.h"

#include <iostream>

#include "base/counted.h"
#include "base/this_host.h"
#include "base/version.h"
#include "cli/config_arguments.h"
#include "comm/world.h"
#include "launch/supervisor.h"

namespace starling {
namespace {

constexpr int kProblems = 3;  // the exit status, as of data that cannot be used

// Runs a rank of this verb on each host.
int examine_hosts(const std::string& hosts, const std::string& file, const std::vector<Override>& overrides) {
  LaunchOptions launch;
  launch.hosts = hosts_of_list(hosts);
  std::vector<std::string> program{"doctor"};
  if (!file.empty()) program.insert(program.end(), {"-c", file});
  for (const auto& [name, value] : overrides) program.push_back(fmt::format("--{}={}", name, value));
  return supervise(launch, program, {});
}

void run_doctor(const CLI::App& verb, const ConfigArguments& arguments, const std::string& hosts) {
  const auto [file, overrides] = arguments.given(verb);
  const Config config = load_config(file, overrides);
  if (!hosts.empty() && !started_by_mpi()) {
    if (const int status = examine_hosts(hosts, file, overrides); status != 0) throw CLI::RuntimeError(status);
    return;
  }
  World world = started_by_mpi() ? make_mpi_world() : make_local_world();
  const bool first = world.comm->rank() == 0;
  std::vector<Examined> all;
  if (first) {
    std::cout << fmt::format("Starling {} on {}\n", kVersion, this_host());
    const auto tell = [&](Examined examined) {
      std::cout << findings_text(examined) << std::flush;
      all.push_back(std::move(examined));
    };
    tell(examine_machine());
    for (Examined& disk : examine_disks(config)) tell(std::move(disk));
    tell(examine_texts(config));
  }
  if (world.comm->size() > 1) {
    world.comm->barrier().wait(kNoDeadline);
    all.push_back(examine_ranks(world));
    if (first) std::cout << findings_text(all.back());
  }
  if (!first) return;
  const int64_t problems = count(all, Level::problem), notes = count(all, Level::note);
  std::cout << (problems + notes == 0 ? "all is well\n" : fmt::format("{}, {}\n", counted(problems, "problem"), counted(notes, "note")));
  std::cout.flush();
  if (problems > 0) throw CLI::RuntimeError(kProblems);
}

}  // namespace

void add_doctor(CLI::App& app) {
  auto* sub = app.add_subcommand("doctor", "examine machine, disk, text and other hosts before a training (docs/guides/doctor.md)");
  const auto arguments = ConfigArguments::add_to(*sub);
  auto hosts = std::make_shared<std::string>();
  sub->add_option("--hosts", *hosts,
                  "hosts with their numbers of ranks, such as alpha:1,beta:1, to be examined together; they need ssh and this program")
      ->type_name("LIST");
  sub->callback([sub, arguments, hosts] { run_doctor(*sub, *arguments, *hosts); });
}

}  // namespace starling
