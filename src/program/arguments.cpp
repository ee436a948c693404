// Shared by the verbs: common options, the message for an unknown argument, the version text.
#include "program/arguments.h"

#include <zlib.h>
#include <zstd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <oneapi/dnnl/dnnl.hpp>
#include <sstream>

#include "backend/backend.h"
#include "backend/cuda/cuda.h"
#include "base/affinity.h"
#include "base/error.h"
#include "base/messages.h"
#include "base/version.h"
#include "comm/cards.h"
#include "comm/world.h"
#include "config/config.h"
#include "config/meant_number.h"
#include "config/suggestion.h"
#include "migration/peer_names.h"
#include "program/help.h"

namespace starling {
namespace {

constexpr int kMostThreads = 4096;

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Returns the option that a path without one probably belongs to: "; did you mean --model run?". A path that does not exist may be a
// directory or a file.
std::string named_with(const CLI::App& verb, const std::string& path) {
  constexpr const char* kDirectories[] = {"--model", "--run"};
  constexpr const char* kFiles[] = {"--input", "--hypotheses", "--source", "--data.source"};
  std::error_code none;
  const auto kind = std::filesystem::status(path, none).type();
  if (kind == std::filesystem::file_type::directory && std::filesystem::exists(path + "/config.yml", none) &&
      verb.get_option_no_throw("--train.output"))
    return fmt::format("; to continue the run in it: {} {}/config.yml", command_name(verb), path);
  std::vector<std::string> meant;
  const auto add = [&](const auto& options) {
    for (const char* name : options)
      if (const CLI::Option* option = verb.get_option_no_throw(name); option && option->count() == 0)
        return meant.push_back(fmt::format("{} {}", name, path));
  };
  if (kind != std::filesystem::file_type::regular) add(kDirectories);
  if (kind != std::filesystem::file_type::directory) add(kFiles);
  return meant.empty() ? "" : fmt::format("; did you mean {}?", fmt::join(meant, " or "));
}

// Returns the word that was meant instead of one that an option does not take, or "". CLI11's message: "--to: firefox not in
// {argos,marian}".
std::string word_advice(const std::string& message) {
  const size_t value = message.find(": "), list = message.find(" not in {");
  if (!message.starts_with("--") || value > list || list == message.npos) return "";
  const std::string option = message.substr(0, value), text = message.substr(value + 2, list - value - 2);
  if (std::string advice = peer_option_value_advice(option, text); !advice.empty()) return advice;
  std::vector<std::string> words;
  std::istringstream in(message.substr(list + 9, message.find('}', list) - list - 9));
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return did_you_mean(text, words);
}

std::string compiler_text() {
#ifdef __OPTIMIZE__
  std::string build = "optimized";
#else
  std::string build = "not optimized";
#endif
#if defined(__SANITIZE_ADDRESS__)
  build += ", AddressSanitizer";
#elif defined(__SANITIZE_THREAD__)
  build += ", ThreadSanitizer";
#endif
  return build + ", GCC-compatible compiler " __VERSION__;
}

}  // namespace

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(verb->get_name());
  return names;
}

std::string command_name(const CLI::App& app) { return (app.get_parent() ? command_name(*app.get_parent()) + " " : "") + app.get_name(); }

void unknown_argument(const CLI::App& app, const std::string& argument) {
  // If --help leaves options out, the advice is to list all of them.
  const bool more = !app.get_options([](const CLI::Option* o) { return is_rare(o->get_group()) || o->get_group() == kKeysGroup; }).empty();
  const std::string own = command_name(app), program = "starling ";
  const std::string fix = more && own.starts_with(program) ? fmt::format("see '{}help {} --all'", program, own.substr(program.size()))
                                                           : fmt::format("see '{} --help'", own);
  if (argument.starts_with('-')) {
    const std::string name = argument.substr(0, argument.find('='));
    const std::vector<std::string> known = option_names(app);
    if (const std::string moved = moved_hint(name, known); !moved.empty())
      throw ConfigError(fmt::format("there is no option {}{}", in_quotes(name), moved));
    if (const std::string advice = peer_name_advice(name, known); !advice.empty())
      throw ConfigError(fmt::format("there is no option {}{}", in_quotes(name), advice));
    const std::string hint = did_you_mean(name, known);
    throw ConfigError(fmt::format("there is no option {}{}{}{}", in_quotes(name), hint, hint.empty() ? "; " : " Or ", fix));
  }
  const std::vector<std::string> verbs = verb_names(app);
  if (verbs.empty() || !app.get_subcommands().empty()) {
    const std::string meant = named_with(app, argument);
    throw ConfigError(fmt::format("unexpected argument {}{}{}{}", in_quotes(argument), meant, meant.ends_with('?') ? " Or " : "; ", fix));
  }
  no_verb(argument, verbs);
}

std::string value_advice(const CLI::App& verb, const std::string& message) {
  if (const std::string word = word_advice(message); !word.empty()) return word;
  // CLI11's messages: "--beam: Value 0,6 not in range 1 to 1024" and "Could not convert: --seed = 1,5".
  const size_t name = message.find("--");
  const CLI::Option* option =
      name == message.npos ? nullptr : verb.get_option_no_throw(message.substr(name, message.find_first_of(": ", name) - name));
  if (!option) return "";
  const std::string kind = option->get_type_name();  // "INT:INT in [1 - 1024]"
  const size_t range = kind.find('[');
  double low = -INFINITY, high = INFINITY;
  if (range != kind.npos) std::sscanf(kind.c_str() + range, "[%lf - %lf]", &low, &high);
  for (const auto& [before, after] : {std::pair("Value ", " not in range"), {" = ", ""}}) {
    const size_t begin = message.find(before) + std::strlen(before);
    if (message.find(before) == message.npos) continue;
    const std::string text(message.substr(begin, *after ? message.find(after, begin) - begin : message.npos));
    for (const bool whole : {true, false}) {
      if (!whole && kind.find("INT") != kind.npos) continue;
      const std::string number = meant_number(text, whole);
      if (number.empty()) continue;
      if (const double value = std::strtod(number.c_str(), nullptr); value >= low && value <= high)
        return fmt::format("; did you mean {}?", number);
    }
  }
  return "";
}

void no_verb(const std::string& word, const std::vector<std::string>& verbs) {
  std::string hint = peer_verb_advice(word);
  hint = hint.empty() ? did_you_mean(word, verbs) : hint + ".";
  throw ConfigError(
      fmt::format("there is no verb {}{} The verbs are {}", in_quotes(word), hint.empty() ? "." : hint, fmt::join(verbs, ", ")));
}

std::string version_text() {
  const dnnl_version_t* dnnl = dnnl_version();
  return fmt::format(
      "starling {}\n"
      "build      {}\n"
      "processor  {} loops, {} matrix products\n"
      "cards      {}\n"
      "libraries  oneDNN {}.{}.{}, SentencePiece " STARLING_SENTENCEPIECE_VERSION
      ", zlib {}, zstd {}, fmt {}.{}.{}, nlohmann-json {}.{}.{}, MPI: {}, NCCL: {}, CLI11 " CLI11_VERSION,
      kVersion, compiler_text(), cpu_instruction_set(), cpu_products(), cuda::describe_cuda(), dnnl->major, dnnl->minor, dnnl->patch,
      zlibVersion(), ZSTD_versionString(), FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100, NLOHMANN_JSON_VERSION_MAJOR,
      NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH, mpi_version(), card_library_version());
}

void add_device_options(CLI::App& verb, DeviceChoice& choice) {
  add_device_option(verb, choice.device);
  verb.add_option("--precision", choice.precision, kPrecisionHelp)
      ->check(CLI::IsMember({"auto", "bf16", "f32", "int8"}))
      ->capture_default_str();
  add_threads_option(verb, choice.threads);
}

void add_device_option(CLI::App& verb, std::string& device) {
  // resolve() reports words that are not devices.
  verb.add_option("--device", device, kDeviceHelp)->capture_default_str();
}

void add_threads_option(CLI::App& verb, int& threads) {
  // Values out of range are left to the check.
  const auto fit = [](std::string& text) {
    int asked = 0;
    if (CLI::detail::lexical_cast(text, asked) && asked > 0 && asked <= kMostThreads)
      text = std::to_string(
          threads_to_use(asked, usable_core_list(), [](const std::string& line) { tell("starling: warning: --threads: {}\n", line); }));
    return std::string();
  };
  verb.add_option("--threads", threads, "computing threads, at most the cores this process may use; 0 = all of them")
      ->check(CLI::Range(0, kMostThreads))
      ->transform(CLI::Validator(fit, "", "cores"))
      ->capture_default_str();
}

void add_target_language_option(CLI::App& verb, std::string& language) {
  verb.add_option("--target-language", language, "of a model of several target languages: the one to translate into, such as de");
}

void add_translator_limits(CLI::App& verb, int64_t& max_source_tokens, int64_t& batch_sentences) {
  verb.add_option("--max-source-tokens", max_source_tokens, "longer sentences are cut, tokens")
      ->check(CLI::Range(1, 8192))
      ->capture_default_str();
  verb.add_option("--batch-size", batch_sentences, "sentences translated at once, at the most")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
}

void add_tokenize_option(CLI::App& verb, std::string& name) {
  const auto known = [](const std::string& value) -> std::string {
    try {
      check_tokenizer_name(value, "the tokenizer");
      return "";
    } catch (const ConfigError& e) {
      return e.what();
    }
  };
  verb.add_option("--tokenize", name,
                  "Tokenizer of BLEU and GLEU: 13a, intl, char, zh, ja-mecab, none (text that is tokenized), or spm:FILE (a SentencePiece "
                  "model); auto: by the references, 13a where words have spaces between them")
      ->check(CLI::Validator(known, ""))
      ->capture_default_str();
}

void tell(const TokenizerChoice& choice) {
  const bool expected = choice.warning.empty() && choice.tokenizer.name() == "13a";
  if (!expected && !choice.notice().empty()) tell("starling: {}\n", choice.notice());
}

}  // namespace starling
