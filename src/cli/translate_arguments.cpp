#include "cli/translate_arguments.h"

#include <numeric>

#include "cli/verbs.h"
#include "config/words.h"
#include "formats/file_format.h"
#include "program/help.h"

namespace starling {
namespace {

void check_document(const TranslateArguments& a) {
  if (!a.document && a.format != "auto") throw ConfigError(fmt::format("--format {} is for documents; add --document", a.format));
  if (!a.document && !a.keep.empty()) throw ConfigError("--keep is for documents; add --document");
  if (a.leaves_other_languages() && (a.tsv || !a.prefix_file.empty() || a.form.source_pieces || a.form.target_pieces))
    throw ConfigError("--source-language auto is for text; leave out --tsv, --prefix-file, --source-pieces and --target-pieces");
  if (!a.document && !a.source_language.empty() && !a.leaves_other_languages())
    throw ConfigError(
        "--source-language determines where the sentences of a document end; add --document, or leave it out. A model that must be told "
        "the language of its source takes the language's piece: --source-prefix __en__");
  if (!a.leaves_other_languages()) check({a.source_language, ""}, "translate");
  if (a.document && a.n_best > 1)
    throw ConfigError("--n-best gives lists of sentences, and --document one document; leave out one of the two");
  if (a.document && a.shards > 1) throw ConfigError("--document translates with one rank; leave out --parallel.tensor");
  const std::pair<bool, const char*> for_lines[] = {{a.lines.alignment || a.lines.soft_alignment, "--alignment"},
                                                    {a.sampling, "--sampling"},
                                                    {a.lines.scores.has_value(), "--word-scores"},
                                                    {a.confidence, "--confidence"},
                                                    {a.tsv, "--tsv"},
                                                    {!a.prefix_file.empty(), "--prefix-file"},
                                                    {a.form.source_pieces, "--source-pieces"},
                                                    {a.form.target_pieces, "--target-pieces"}};
  for (const auto& [given, option] : for_lines)
    if (a.document && given) throw ConfigError(fmt::format("{} is for lines; leave it out, or --document", option));
  if (a.form.source_pieces && a.lines.alignment == AlignmentUnit::words)
    throw ConfigError("--alignment words needs the words of a text, and --source-pieces reads pieces; choose --alignment pieces");
}

void check_models_and_sampling(const TranslateArguments& a) {
  if (a.models.size() > 1 && a.shards > 1)
    throw ConfigError("an ensemble of several --model translates with one rank; leave out --parallel.tensor");
  if (!a.weights.empty() && a.weights.size() != a.models.size())
    throw ConfigError(fmt::format("--weights has {} for {} --model; give one for each", a.weights.size(), a.models.size()));
  if (!a.weights.empty() && std::accumulate(a.weights.begin(), a.weights.end(), 0.0) <= 0)
    throw ConfigError("--weights are all 0; give at least one above 0");
  if (!a.glossary.empty() && (a.sampling || a.form.source_pieces || a.form.target_pieces || a.models.size() > 1 || a.shards > 1))
    throw ConfigError(
        "--glossary is for text that one model searches translations of; leave out --sampling, --source-pieces, --target-pieces, "
        "--parallel.tensor and further --model");
  if (!a.memory.empty() && (a.form.source_pieces || a.form.target_pieces || a.tsv || !a.prefix_file.empty()))
    throw ConfigError("--memory is for text; leave out --source-pieces, --target-pieces, --tsv and --prefix-file");
  if (!a.sampling) return;
  if (a.tsv || !a.prefix_file.empty())
    throw ConfigError(
        "--tsv and --prefix-file give each translation a beginning, and --sampling draws at random; leave out one of the two");
  if (a.models.size() > 1) throw ConfigError("--sampling draws from one model; leave it out, or all but one --model");
  if (a.search.given("beam")) throw ConfigError("--beam searches, and --sampling draws at random; leave out one of the two");
  if (a.lines.alignment || a.lines.soft_alignment || a.lines.scores)
    throw ConfigError("--alignment and --word-scores are for translations that are searched for; leave them out, or --sampling");
  if (a.shards > 1) throw ConfigError("--sampling translates with one rank; leave out --parallel.tensor");
}

void add_sampling(CLI::App& verb, TranslateArguments& a) {
  CLI::Option* sampling =
      verb.add_flag("--sampling", a.sampling, "draw translations at random with the model's probabilities, --n-best of each line");
  verb.add_option("--sampling-top-k", a.drawing.top_k, "draw each piece from this many most probable ones; 0 = all")
      ->needs(sampling)
      ->check(CLI::Range(0, 1024))
      ->capture_default_str()
      ->group(kFurtherGroup);
  verb.add_option("--sampling-temperature", a.drawing.temperature,
                  "probabilities are raised to the power 1 / temperature: below 1, what is probable is drawn more often")
      ->needs(sampling)
      ->check(real_range(0.001, 1000))
      ->capture_default_str()
      ->group(kFurtherGroup);
  verb.add_option("--seed", a.drawing.key, "of the random numbers: the same seed draws the same translations")
      ->needs(sampling)
      ->capture_default_str()
      ->group(kFurtherGroup);
}

// What a line of the input and of the output holds.
void add_line_options(CLI::App& verb, TranslateArguments& a) {
  verb.add_option("--n-best", a.n_best,
                  "translations of each sentence (fewer where pruned); above 1 lines are: number ||| text ||| log-probability ||| score")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  CLI::Option* alignment =
      verb.add_option_function<std::string>(
              "--alignment",
              [&a](const std::string& unit) {
                a.lines.soft_alignment = unit == "soft";
                if (!a.lines.soft_alignment) a.lines.alignment = from_word<AlignmentUnit>(unit);
              },
              "words or pieces: follows each text with ||| and pairs of positions, source-target, from the model's attention; soft: the "
              "attention of each piece to all source pieces")
          ->check(CLI::IsMember({"words", "pieces", "soft"}));
  verb.add_option("--alignment-threshold", a.lines.alignment_threshold,
                  "pairs are all that have more attention than this, not the largest of each target piece; 0 = the largest")
      ->needs(alignment)
      ->check(real_range(0, 1))
      ->capture_default_str()
      ->group(kFurtherGroup);
  verb.add_option_function<std::string>(
          "--word-scores", [&a](const std::string& unit) { a.lines.scores = from_word<AlignmentUnit>(unit); },
          "words or pieces: follows each text with ||| WordScores= and log-probabilities (nats): of words the mean of their pieces, of "
          "pieces also that of the end of sentence")
      ->check(CLI::IsMember({"words", "pieces"}));
  verb.add_flag("--translate-all", a.all_lines, "also translates what has no letter, such as numbers and times, which else stays as it is")
      ->group(kFurtherGroup);
  verb.add_flag(
      "--confidence", a.confidence,
      "follows each text with ||| Confidence= and the share of its words that is probably right, WordConfidence= and how probably "
      "each of them is; needs starling calibrate");
  CLI::Option* prefix_file =
      verb.add_option("--prefix-file", a.prefix_file, "file of the texts that the translations begin with, one for each line of the input")
          ->group(kFurtherGroup);
  verb.add_flag("--tsv", a.tsv, "each line of the input is a source and, after a tab, the text that its translation begins with")
      ->group(kFurtherGroup)
      ->excludes(prefix_file);
  verb.add_flag("--source-pieces", a.form.source_pieces, "the input is pieces of the source vocabulary with spaces between them")
      ->group(kFurtherGroup);
  verb.add_flag("--target-pieces", a.form.target_pieces,
                "writes (and with --tsv reads) translations as pieces of the target vocabulary with spaces between them")
      ->group(kFurtherGroup);
  verb.add_option("--weights", a.weights, "of several --model, with commas between them: how much each one counts; default: all alike")
      ->delimiter(',')
      ->check(real_range(0, 1e6))
      ->group(kFurtherGroup);
}

}  // namespace

void check(const TranslateArguments& a) {
  check_document(a);
  check_models_and_sampling(a);
}

CLI::App* add_translate_arguments(CLI::App& app, const std::shared_ptr<TranslateArguments>& a) {
  CLI::App* const sub = app.add_subcommand("translate", "translate raw text with a trained model");
  sub->add_option("-m,--model", a->models, "run directory, checkpoint or model directory; given several times, an ensemble of them")
      ->required()
      ->allow_extra_args(false)
      ->type_name("TEXT");
  sub->add_option("-i,--input", a->inputs, "text to translate, one sentence a line (plain, .gz, .zst); - = standard input")
      ->capture_default_str();
  sub->add_option("-o,--output", a->output, "where translations go; - = standard output; a file is FILE.partial until it is complete")
      ->capture_default_str();
  a->search.add_to(*sub);
  add_line_options(*sub, *a);
  add_sampling(*sub, *a);
  CLI::Option* most_tokens =
      sub->add_option("--max-source-tokens", a->max_source_tokens,
                      "longer sentences are cut, tokens; with --document they are translated in parts, at 200 unless "
                      "this is given")
          ->check(CLI::Range(1, 8192))
          ->capture_default_str();
  sub->add_flag("--document", a->document,
                "each input is a document: its sentences are found and translated, everything else stays (docs/guides/documents.md)");
  sub->add_option("--format", a->format,
                  "of documents: text; html and xml, whose tags are kept and moved with their words; one of the "
                  "other formats of docs/guides/documents.md; auto: by the input's first bytes and its name")
      ->check(CLI::IsMember(document_formats()))
      ->capture_default_str();
  sub->add_option("--keep", a->keep,
                  "of documents: a regular expression (RE2) of what stays as it is, such as placeholders; may be repeated")
      ->allow_extra_args(false)
      ->type_name("REGEX");
  add_target_language_option(*sub, a->target_language);
  sub->add_option("--memory", a->memory,
                  "translation memory, TMX or lines with tabs: lines, or sentences of documents, that are in it get its translation");
  sub->add_option(
      "--glossary", a->glossary,
      "file of terms that must be translated as it says: lines of a term, a tab and its translation (docs/guides/glossaries.md)");
  sub->add_option("--source-language", a->source_language,
                  "of documents: code of their language, such as en or pt-BR; default: the model's. auto = lines, or sentences of "
                  "documents, that are clearly in another language than the model translates stay as they are");
  sub->add_option("--batch-size", a->batch_sentences, "sentences translated at once, at the most")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  add_device_options(*sub, a->compute);
  sub->add_option("--parallel.tensor", a->shards,
                  "shards that each layer and vocabulary is cut into, on as many ranks of mpirun: for a model that does not fit one")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  sub->add_flag("--quiet", a->quiet, "no progress and no line about speed on standard error");
  sub->parse_complete_callback([a, most_tokens] { a->most_tokens_given = most_tokens->count() > 0; });
  return sub;
}

}  // namespace starling
