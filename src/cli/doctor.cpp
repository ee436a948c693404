// The verb `starling doctor`: what a training needs, examined (docs/guides/doctor.md).
#include "doctor/doctor.h"

#include <algorithm>
#include <iostream>

#include "base/counted.h"
#include "base/error.h"
#include "base/this_host.h"
#include "base/version.h"
#include "comm/world.h"
#include "doctor/meeting.h"
#include "doctor/reach.h"
#include "launch/command.h"
#include "program/config_arguments.h"
#include "run/fine_tuning.h"

namespace starling {
namespace {

constexpr int kProblems = 3;  // the exit status, as of data that cannot be used

// What has been found, printed as it comes.
class DoctorReport {
 public:
  void add(const Examined& examined) {
    std::cout << findings_text(examined) << std::flush;
    all_.push_back(examined);
  }
  void add(const std::vector<Examined>& several) {
    for (const Examined& examined : several) add(examined);
  }
  int64_t problems() const { return count(all_, Level::problem); }
  // Exits with kProblems if there are problems.
  void end() const {
    const int64_t notes = count(all_, Level::note);
    std::cout << (problems() + notes == 0 ? "all is well\n"
                                          : fmt::format("{}, {}\n", counted(problems(), "problem"), counted(notes, "note")));
    std::cout.flush();
    if (problems() > 0) throw CLI::RuntimeError(kProblems);
  }

 private:
  std::vector<Examined> all_;
};

// Runs a rank of this verb on each host, once all of them can be reached.
void examine_hosts(const std::vector<LaunchHost>& hosts, const std::string& file, const std::vector<Override>& overrides) {
  std::vector<std::string> program{"doctor"}, names;
  if (!file.empty()) program.insert(program.end(), {"-c", file});
  for (const auto& [name, value] : overrides) program.push_back(fmt::format("--{}={}", name, value));
  for (const LaunchHost& host : hosts) names.push_back(host.name);
  DoctorReport report;
  report.add(examine_reach(names, [](const std::vector<std::string>& some) {
    LaunchOptions one_each;
    for (const std::string& host : some) one_each.hosts.push_back({host, 1});
    return launch_command(one_each, {"--version"});
  }));
  if (report.problems() > 0) return report.end();
  LaunchOptions all;
  all.hosts = hosts;
  const JointEnd joint = run_on_hosts(names, launch_command(all, program));
  if (joint.ended.findings.empty()) {
    if (joint.status != 0) throw CLI::RuntimeError(joint.status);
    return;
  }
  report.add(joint.ended);
  report.end();
}

bool is_first_of_host(const Communicator& comm) {
  const std::vector<int> firsts = first_ranks(comm);
  return std::find(firsts.begin(), firsts.end(), comm.rank()) != firsts.end();
}

void run_doctor(const CLI::App& verb, const ConfigArguments& arguments, const std::string& hosts) {
  const auto [file, overrides] = arguments.given(verb);
  const bool by_mpi = started_by_mpi();
  if (verb.count("--hosts") > 0 && !by_mpi) {
    load_config(file, overrides);  // refused before anything is started
    return examine_hosts(hosts_of_list(hosts), file, overrides);
  }
  World world = by_mpi ? meet_ranks() : make_local_world();
  Communicator& comm = *world.comm;
  const bool first = comm.rank() == 0;
  Config config;
  std::string complaint;
  try {
    config = first ? load_run_config(file, overrides) : load_config(file, overrides);  // with the model that the run would choose
  } catch (const Error& e) {
    if (first) throw;
    complaint = e.what();
  }
  DoctorReport report;
  if (first) std::cout << fmt::format("Starling {} on {}\n", kVersion, this_host());
  if (comm.size() > 1) report.add(examine_ranks(world));
  std::vector<Examined> elsewhere;
  if (first) {
    report.add(examine_machine());
    report.add(examine_disks(config));
    report.add(examine_texts(config));
  } else if (is_first_of_host(comm)) {
    elsewhere = examine_other_host(config, complaint);
  }
  if (comm.size() > 1) {
    report.add(gather_findings(comm, elsewhere));
    report.add(examine_links(world));
  }
  world.comm.reset();  // leaves MPI: the exit status of a problem is no reason to abort the other ranks
  if (first) report.end();
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
