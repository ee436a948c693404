#include "doctor/reach.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <sstream>

#include "base/error.h"
#include "base/this_host.h"

namespace starling {
namespace {

// What ssh says, and how that is mended.
struct SshFailure {
  const char *says, *mend;
};
constexpr SshFailure kSshFailures[] = {
    {"Permission denied", "ssh must work without a password: ssh-copy-id {0}"},
    {"Host key verification failed", "log in once by hand and confirm the key of that host: ssh {0}"},
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", "log in once by hand and confirm the key of that host: ssh {0}"},
    {"Could not resolve hostname", "write the name as DNS or /etc/hosts have it, or give the address: getent hosts {0}"},
    {"Connection refused", "start an ssh server there: apt-get install openssh-server"},
    {"No route to host", "see that the host is up and on the same network: ping {0}"},
    {"timed out", "see that the host is up and that its firewall lets ssh in (TCP port 22): ssh {0} true"},
};

// Whether the name or address is one of this host's own: only those can be bound to.
bool is_own_address(const std::string& host) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  bool own = false;
  for (const addrinfo* a = found; a && !own; a = a->ai_next) {
    const int file = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    own = file >= 0 && bind(file, a->ai_addr, a->ai_addrlen) == 0;
    if (file >= 0) close(file);
  }
  freeaddrinfo(found);
  return own;
}

// The lines of a message that say something, as one.
std::string in_one_line(const std::string& output) {
  constexpr size_t kMost = 300;
  std::istringstream lines(output);
  std::string text;
  for (std::string line; std::getline(lines, line) && text.size() < kMost;) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.find_first_not_of(" -") == std::string::npos) continue;
    text += (text.empty() ? "" : " ") + line.substr(line.find_first_not_of(' '));
  }
  return text.size() > kMost ? text.substr(0, kMost) + " ..." : text;
}

Finding ssh_failure(const std::string& host, const std::string& program, const CommandEnd& end, double seconds) {
  const auto problem = [&](const std::string& what, const std::string& mend) {
    return Finding{Level::problem, fmt::format("{}: {}", host, what), mend};
  };
  if (end.status == kNoProgram && !end.late)
    return problem(fmt::format("{} cannot be started", program), "install it (apt-get install openssh-client), or name another agent");
  std::string says = in_one_line(end.output);
  if (end.late) says = fmt::format("timed out after {:g} s", seconds);
  if (says.empty()) says = fmt::format("exit status {}", end.status);
  for (const SshFailure& failure : kSshFailures)
    if (says.find(failure.says) != std::string::npos)
      return problem(fmt::format("{} fails: {}", program, says), fmt::format(fmt::runtime(failure.mend), host));
  return problem(fmt::format("{} fails: {}", program, says), fmt::format("this command must work without a password: ssh {} true", host));
}

const char* const kOpenFirewall =
    "let the hosts' firewalls pass TCP between them, on all ports or on chosen ones; if hosts have several networks, name the common one: "
    "export OMPI_MCA_oob_tcp_if_include=192.168.1.0/24 OMPI_MCA_btl_tcp_if_include=192.168.1.0/24 (docs/guides/doctor.md: Firewalls)";

Finding mpirun_failure(const std::string& host, const CommandEnd& end, double seconds) {
  const std::string says = end.output.empty() ? fmt::format("status {}", end.status) : in_one_line(end.output);
  if (end.late)
    return {Level::problem,
            fmt::format("{}: answers by ssh, but Open MPI's daemon there has not reached {} within {:g} s: a firewall drops its packets, "
                        "or they take different networks",
                        host, this_host(), seconds),
            kOpenFirewall};
  return {Level::problem, fmt::format("{}: mpirun cannot start this program there: {}", host, says),
          says.find("TCP connection") != std::string::npos
              ? kOpenFirewall
              : "install the same Starling there under the same path, and Open MPI (apt-get install openmpi-bin)"};
}

CommandEnd run_mpirun_for(const std::vector<std::string>& command, const CommandLimits& limits, CommandOutput output) {
  CommandEnd end = run_commands({command}, limits, output).front();
  if (end.status == kNoProgram && !end.late)
    throw ConfigError("mpirun was not found on PATH; install Open MPI (apt-get install openmpi-bin)");
  return end;
}

bool is_good(const CommandEnd& end) { return end.status == 0 && !end.late; }

// Whether the ranks have come so far that rank 0 reports about them.
bool ranks_have_met(const std::string& output) { return ("\n" + output).find(fmt::format("\n{}\n", kRanksTopic)) != std::string::npos; }

// Asks hosts by ssh. Returns those that answer.
std::vector<std::string> ask_by_ssh(const std::vector<std::string>& hosts, const CommandLimits& limits, std::vector<Finding>& found) {
  const std::vector<std::string> ssh = ssh_command();
  std::vector<std::vector<std::string>> commands;
  for (const std::string& host : hosts) {
    commands.push_back(ssh);
    commands.back().insert(commands.back().end(), {host, "true"});
  }
  const std::vector<CommandEnd> ends = run_commands(commands, limits);
  std::vector<std::string> answering;
  for (size_t i = 0; i < hosts.size(); ++i)
    if (is_good(ends[i]))
      answering.push_back(hosts[i]);
    else if (!is_own_address(hosts[i]))  // mpirun starts those of this host without ssh
      found.push_back(ssh_failure(hosts[i], ssh.front(), ends[i], limits.run_s));
  return answering;
}

// Asks hosts by an mpirun each, one after another: those that run side by side would take each other's ports where only few are allowed.
// all: what became of one mpirun for all of them, which has failed.
void find_failing(const std::vector<std::string>& hosts, const MpirunFor& mpirun_for, const ReachLimits& limits, const CommandEnd& all,
                  std::vector<Finding>& found) {
  if (hosts.size() == 1) return found.push_back(mpirun_failure(hosts.front(), all, limits.start.run_s));
  const size_t before = found.size();
  const auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > limits.one_by_one_s)
      return found.push_back({Level::note,
                              fmt::format("{}: mpirun was not tried there, because time ran out",
                                          fmt::join(std::vector(hosts.begin() + static_cast<std::ptrdiff_t>(i), hosts.end()), ", ")),
                              "fix the others first"});
    const CommandEnd end = run_mpirun_for(mpirun_for({hosts[i]}), limits.one_host, CommandOutput::kept);
    if (!is_good(end)) found.push_back(mpirun_failure(hosts[i], end, limits.one_host.run_s));
  }
  if (found.size() == before)
    found.push_back({Level::problem,
                     fmt::format("{}: mpirun starts a process on each of them, but not on all together: {}", fmt::join(hosts, ", "),
                                 all.late ? fmt::format("it had not ended after {:g} s", limits.start.run_s) : in_one_line(all.output)),
                     kOpenFirewall});
}

}  // namespace

Examined examine_reach(const std::vector<std::string>& hosts, const MpirunFor& mpirun_for, const ReachLimits& limits) {
  Examined reach{"hosts", {}};
  std::vector<std::string> others;
  for (const std::string& host : hosts)
    if (host != "localhost" && host != this_host()) others.push_back(host);
  const std::vector<std::string> answering = ask_by_ssh(others, limits.ssh, reach.findings);
  if (answering.empty()) return reach;
  if (const CommandEnd end = run_mpirun_for(mpirun_for(answering), limits.start, CommandOutput::kept); is_good(end))
    reach.findings.insert(reach.findings.begin(), {Level::fine, fmt::format("ssh and mpirun reach {}", fmt::join(answering, ", ")), ""});
  else
    find_failing(answering, mpirun_for, limits, end, reach.findings);
  return reach;
}

JointEnd run_on_hosts(const std::vector<std::string>& hosts, const std::vector<std::string>& mpirun, const ReachLimits& limits) {
  const CommandEnd end = run_mpirun_for(mpirun, limits.examination, CommandOutput::passed_on);
  JointEnd joint{end.status, {"hosts", {}}};
  if (!end.late) return joint;
  joint.status = 1;
  const std::string names = fmt::format("{}", fmt::join(hosts, ", ")), limit = fmt::format("{:g} s", limits.examination.run_s);
  if (ranks_have_met(end.output))
    joint.ended.findings.push_back(
        {Level::problem,
         fmt::format("{}: the examination took longer than {} and was stopped; what is missing above was not examined", names, limit),
         "run starling doctor on each host by itself: most likely a disk there is very slow"});
  else
    joint.ended.findings.push_back(
        {Level::problem,
         fmt::format("{}: mpirun started ranks there, but they did not reach each other within {} and were stopped", names, limit),
         kOpenFirewall});
  return joint;
}

}  // namespace starling
