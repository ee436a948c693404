#include "program/program.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>

#include "base/error.h"
#include "base/messages.h"
#include "base/system_reason.h"
#include "comm/cards.h"
#include "comm/world.h"
#include "program/arguments.h"
#include "program/help.h"

namespace starling {
namespace {

// Opens standard streams that the caller closed on /dev/null. Otherwise the next file opened, such as a checkpoint, would take their place.
void fill_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
      if (open("/dev/null", O_RDWR) < 0) _exit(1);
    }
  }
}

// When the reader of the output has gone, exits with the status that shells report for it. Training ignores the signal.
void leave_quietly(int) { _exit(128 + SIGPIPE); }

// Returns the innermost verb that was named.
const CLI::App& active(const CLI::App& app) {
  const std::vector<CLI::App*> verbs = app.get_subcommands();
  return verbs.empty() ? app : active(*verbs.front());
}

void finish_output() {
  errno = 0;
  std::cout.flush();
  if (!std::cout || std::fflush(stdout) != 0) {
    throw IoError(fmt::format("standard output: writing failed: {}", system_reason(errno)));
  }
}

// A rank that ends early aborts the whole run, since the other ranks would wait for it.
int give_up(int status) {
  if (!rank_label().empty()) abort_run(status);
  return status;
}

// Refuses unknown verbs first, because CLI11 would answer --help before it looks at them.
void check_verbs(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* verb = &app;
  for (const std::string& word : arguments) {
    const std::vector<std::string> verbs = verb_names(*verb);
    if (verbs.empty() || word.starts_with('-')) return;
    if (std::find(verbs.begin(), verbs.end(), word) == verbs.end()) no_verb(word, verbs);
    verb = verb->get_subcommand(word);
  }
}

// Returns the arguments for CLI11, which takes them in reverse order. It would take the argument after --key= as its value, so the empty
// value is passed explicitly.
std::vector<std::string> reversed_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> all;
  bool options = true;  // until "--"
  for (const std::string& argument : arguments) {
    options = options && argument != "--";
    const size_t equals = argument.find('=');
    if (options && argument.starts_with("--") && equals == argument.size() - 1)
      all.insert(all.end(), {argument.substr(0, equals), ""});
    else
      all.push_back(argument);
  }
  std::reverse(all.begin(), all.end());
  return all;
}

int run(CLI::App& app, const std::vector<std::string>& arguments) {
  check_verbs(app, arguments);
  try {
    app.parse(reversed_arguments(arguments));
  } catch (const CLI::Success& e) {  // --help and --version
    app.exit(e);
  } catch (const CLI::RuntimeError& e) {
    return give_up(e.get_exit_code());
  } catch (const CLI::ParseError& e) {
    const CLI::App& verb = active(app);
    // A mistyped option is the likely cause of a missing required one.
    const bool extras = dynamic_cast<const CLI::ExtrasError*>(&e) || dynamic_cast<const CLI::RequiredError*>(&e);
    if (const std::vector<std::string> rest = app.remaining(true); extras && !rest.empty()) {
      const auto option = std::find_if(rest.begin(), rest.end(), [](const std::string& a) { return a.starts_with('-') && a != "--"; });
      unknown_argument(verb, option == rest.end() ? rest.front() : *option);
    }
    const std::string meant = value_advice(verb, e.what());
    throw ConfigError(fmt::format("{}{} '{} --help'", e.what(), meant.empty() ? "; see" : meant + " See", command_name(verb)));
  }
  finish_output();
  return 0;
}

// All ranks fail in the same way on a configuration error, even before the ranks of a host have met. The first rank reports it, and mpirun
// then ends the others. If it has nothing to report, the others do.
void leave_it_to_the_first(int status) {
  const bool met = !rank_label().empty();
  const char* rank = std::getenv(met ? "OMPI_COMM_WORLD_RANK" : "OMPI_COMM_WORLD_LOCAL_RANK");
  if (rank && std::string_view(rank) != "0" && (!met || status == 2 || status == 4)) sleep(met ? 2 : 5);
}

int fail(int status, std::string_view message) {
  leave_it_to_the_first(status);
  std::cout.flush();
  tell("starling: error: {}{}\n", rank_label(), message);
  return give_up(status);
}

int run_verb(const VerbProgram& program, const std::vector<std::string>& arguments) {
  CLI::App app(program.text, "starling");
  app.set_version_flag("-V,-v,--version", version_text, "Print version, processor and libraries");
  app.require_subcommand(0, 1);
  add_help(app);
  app.failure_message([](const CLI::App*, const CLI::Error&) { return std::string(); });
  program.add_verbs(app, arguments);
  app.footer("'starling help VERB' explains a verb, 'starling help VERB --all' everything that it knows.");
  if (arguments.empty()) {
    tell("{}", app.help());
    return 2;
  }
  return run(app, help_as_option(arguments));
}

}  // namespace

int status_of(const std::function<int()>& body) {
  try {
    return body();
  } catch (const ConfigError& e) {
    return fail(2, e.what());
  } catch (const DataError& e) {
    return fail(3, e.what());
  } catch (const IoError& e) {
    return fail(3, e.what());
  } catch (const DivergedError& e) {
    return fail(4, e.what());
  } catch (const PeerError& e) {
    return fail(5, e.what());
  } catch (const std::bad_alloc&) {
    return fail(1, "not enough memory; use smaller batches (train.micro-batch-tokens, --batch-size) or a smaller model");
  } catch (const std::exception& e) {
    return fail(1, e.what());
  }
}

// OpenMP's threads spin for milliseconds by default while they wait for each other. On an idle machine that gains nothing here, and next to
// other programs it slows training tenfold or more. The OpenMP runtime reads the setting before main.
bool limit_spinning() {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return false;
  setenv("GOMP_SPINCOUNT", "1000", 1);
  return true;
}

int run_program(const VerbProgram& program, int argc, char** argv) {
  if (limit_spinning()) execv("/proc/self/exe", argv);  // returns only if /proc is missing; spinning then remains as it is
  prctl(PR_SET_NAME, "starling");                       // the name in ps and top; after the restart it would be "exe"
  fill_standard_streams();
  std::signal(SIGPIPE, leave_quietly);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond ulimit -f then fails with an error instead of killing the process
  const int status = call_program(program, {argv + std::min(argc, 1), argv + argc});
  leave_if_cards_may_be_busy(status);
  return status;
}

int call_program(const VerbProgram& program, const std::vector<std::string>& arguments) {
  return status_of([&] { return run_verb(program, arguments); });
}

}  // namespace starling
