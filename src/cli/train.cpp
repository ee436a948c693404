// The verb `starling train`: runs as a single process, or as one of several that mpirun or srun started.
#include <csignal>
#include <filesystem>
#include <iostream>

#include "base/error.h"
#include "base/stop_note.h"
#include "base/text_files.h"
#include "migration/conversion.h"
#include "migration/marian_options.h"
#include "migration/peer_names.h"
#include "program/config_arguments.h"
#include "run/trainer.h"

namespace starling {
namespace {

std::string check_dump_kind(const std::string& kind) {
  return kind.empty() || kind == "minimal" || kind == "full" ? ""
                                                             : fmt::format("{} is not allowed; choose minimal or full", in_quotes(kind));
}

struct TrainArguments {
  std::string dump;
  std::vector<std::string> marian, opennmt;
  bool markdown = false, names = false;
};

// Prints the configuration that another program's files, and keys beside them, mean here, with what is not the same as comments.
void print_converted(const TrainArguments& a, std::vector<Override> more) {
  std::vector<PeerFile> files;
  for (const std::string& file : a.marian.empty() ? a.opennmt : a.marian) files.push_back({read_config_file(file), file});
  std::set<std::string> given;
  for (const auto& [name, value] : more) given.insert(name);
  Conversion c = a.marian.empty() ? convert_opennmt(files) : convert_marian(files, given);
  std::erase_if(c.keys, [&](const Override& key) { return given.contains(key.first); });
  c.keys.insert(c.keys.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  const std::string yaml = with_names_of_file(c, [&] { return dump_config(load_config("", c.keys), false); });
  for (const auto& [heading, lines] :
       {std::pair{"Approximate", &c.approximate}, {"Left out", &c.missing}, {"Not needed here", &c.not_needed}}) {
    if (!lines->empty()) std::cout << "# " << heading << ":\n";
    for (const std::string& line : *lines) std::cout << "#   " << line << "\n";
  }
  std::cout << yaml;
}

// The keys that are given beside a file to convert.
std::vector<Override> converted_keys(const ConfigArguments& arguments, const CLI::App& verb) {
  auto [file, overrides] = arguments.given(verb);
  if (!file.empty())
    throw ConfigError(fmt::format("{} is a configuration of ours, beside one that is converted; give the latter alone", in_quotes(file)));
  return overrides;
}

void run_train(const CLI::App& verb, const CLI::Option& dump, const TrainArguments& a, const ConfigArguments& arguments) {
  if (a.markdown) {
    std::cout << config_reference_markdown();
    return;
  }
  if (a.names) {
    std::cout << peer_names_markdown() << "\n" << peer_values_markdown() << "\n" << marian_options_markdown();
    return;
  }
  if (!a.marian.empty() || !a.opennmt.empty()) return print_converted(a, converted_keys(arguments, verb));
  if (dump.count() > 0) {
    std::cout << dump_config(arguments.load_run(verb), a.dump == "full");
    return;
  }
  std::signal(SIGPIPE, SIG_IGN);  // training outlives its terminal; the log files have the rest
  arguments.given(verb);          // typing errors are reported once, before the ranks meet
  int status = 0;
  {
    World world = started_by_mpi() ? make_mpi_world() : make_local_world();
    const Config config = arguments.load_run(verb, *world.comm);
    if (const std::string record = config.train.output + "/config.yml"; config.data.train.empty() && std::filesystem::exists(record))
      throw ConfigError(
          fmt::format("no training corpus is named; to continue the run in {}: starling train {}", config.train.output, record));
    require_data(config, true);
    const bool first = world.comm->rank() == 0;
    const StopNote note(first ? fmt::format("stopped before the first update; what is complete is kept in {}, and the same command goes on",
                                            config.train.output)
                              : "");
    status = run_training(config, world);
  }  // from here on ranks are separate: an exception would end the others
  if (status != 0) throw CLI::RuntimeError(status);
}

}  // namespace

void add_train(CLI::App& app) {
  auto* verb = app.add_subcommand("train", "Train a model; the same command continues a run that was stopped");
  auto a = std::make_shared<TrainArguments>();
  const auto arguments = ConfigArguments::add_to(*verb);
  auto* dump =
      verb->add_option("--dump-config", a->dump, "Print the configuration and exit: minimal (what differs from the defaults) or full")
          ->expected(0, 1)
          ->type_name("[minimal|full]")
          ->check(check_dump_kind, "");
  CLI::Option* marian = verb->add_option("--from-marian", a->marian,
                                         "Print what configurations of Marian mean here, together with keys given beside them, and exit; "
                                         "of several files, given one by one, later ones win")
                            ->type_name("FILE")
                            ->expected(1)
                            ->take_all();
  verb->add_option("--from-opennmt", a->opennmt, "Print what a configuration of OpenNMT-py means here, and exit")
      ->type_name("FILE")
      ->expected(1)
      ->take_all()
      ->excludes(marian);
  verb->add_flag("--help-markdown", a->markdown, "Print the reference of all keys as Markdown")->group("");
  verb->add_flag("--names", a->names, "Print what Marian, OpenNMT-py, fairseq and Sockeye call the keys and options, and exit");
  verb->callback([verb, dump, a, arguments] { run_train(*verb, *dump, *a, *arguments); });
}

}  // namespace starling
