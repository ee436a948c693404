// The verb `starling translate`: translates lines or documents in order (src/translate/).
#include <iostream>
#include <memory>

#include "base/messages.h"
#include "base/stop_note.h"
#include "cli/translation_arguments.h"
#include "cli/verbs.h"
#include "config/words.h"
#include "formats/file_format.h"
#include "program/help.h"
#include "translate/translate_files.h"

namespace starling {
namespace {

struct TranslateArguments {
  TranslateOptions options;
  SearchArguments search;
};

// What a line of the input and of the output holds.
void add_line_options(CLI::App& verb, TranslateOptions& o) {
  verb.add_option("--n-best", o.n_best,
                  "translations of each sentence (fewer where pruned); above 1 lines are: number ||| text ||| log-probability ||| score")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  CLI::Option* alignment =
      verb.add_option_function<std::string>(
              "--alignment",
              [&o](const std::string& unit) {
                o.lines.soft_alignment = unit == "soft";
                if (!o.lines.soft_alignment) o.lines.alignment = from_word<AlignmentUnit>(unit);
              },
              "words or pieces: follows each text with ||| and pairs of positions, source-target, from the model's attention; soft: the "
              "attention of each piece to all source pieces")
          ->check(CLI::IsMember({"words", "pieces", "soft"}));
  verb.add_option("--alignment-threshold", o.lines.alignment_threshold,
                  "pairs are all that have more attention than this, not the largest of each target piece; 0 = the largest")
      ->needs(alignment)
      ->check(real_range(0, 1))
      ->capture_default_str()
      ->group(kFurtherGroup);
  verb.add_option_function<std::string>(
          "--word-scores", [&o](const std::string& unit) { o.lines.scores = from_word<AlignmentUnit>(unit); },
          "words or pieces: follows each text with ||| WordScores= and log-probabilities (nats): of words the mean of their pieces, of "
          "pieces also that of the end of sentence")
      ->check(CLI::IsMember({"words", "pieces"}));
  verb.add_flag("--translate-all", o.all_lines, "also translates what has no letter, such as numbers and times, which else stays as it is")
      ->group(kFurtherGroup);
  verb.add_flag(
      "--confidence", o.confidence,
      "follows each text with ||| Confidence= and the share of its words that is probably right, WordConfidence= and how probably "
      "each of them is; needs starling calibrate");
  CLI::Option* prefix_file =
      verb.add_option("--prefix-file", o.prefix_file, "file of the texts that the translations begin with, one for each line of the input")
          ->group(kFurtherGroup);
  verb.add_flag("--tsv", o.tsv, "each line of the input is a source and, after a tab, the text that its translation begins with")
      ->group(kFurtherGroup)
      ->excludes(prefix_file);
  verb.add_flag("--source-pieces", o.form.source_pieces, "the input is pieces of the source vocabulary with spaces between them")
      ->group(kFurtherGroup);
  verb.add_flag("--target-pieces", o.form.target_pieces,
                "writes (and with --tsv reads) translations as pieces of the target vocabulary with spaces between them")
      ->group(kFurtherGroup);
}

void run_translate(const TranslateOptions& o) {
  StopNote note("");
  translate_files(*real_file_system(), o,
                  {.output = std::cout,
                   .tell = [](const std::string& text) { tell("{}", text); },
                   .screen = screen_beside(o.output),
                   .on_stop = [&](const std::string& line) { note.set(line); }});
}

}  // namespace

void add_translate(CLI::App& app) {
  auto a = std::make_shared<TranslateArguments>();
  TranslateOptions& o = a->options;
  CLI::App* const sub = app.add_subcommand("translate", "translate raw text with a trained model");
  add_models(*sub, o);
  sub->add_option("-i,--input", o.inputs, "text to translate, one sentence a line (plain, .gz, .zst); - = standard input")
      ->capture_default_str();
  sub->add_option("-o,--output", o.output, "where translations go; - = standard output; a file is FILE.partial until it is complete")
      ->capture_default_str();
  a->search.add_to(*sub);
  add_line_options(*sub, o);
  add_sampling(*sub, o);
  CLI::Option* most_tokens =
      sub->add_option("--max-source-tokens", o.max_source_tokens,
                      "longer sentences are cut, tokens; with --document they are translated in parts, at 200 unless "
                      "this is given")
          ->check(CLI::Range(1, 8192))
          ->capture_default_str();
  sub->add_flag("--document", o.document,
                "each input is a document: its sentences are found and translated, everything else stays (docs/guides/documents.md)");
  sub->add_option("--format", o.format,
                  "of documents: text; html and xml, whose tags are kept and moved with their words; one of the "
                  "other formats of docs/guides/documents.md; auto: by the input's first bytes and its name")
      ->check(CLI::IsMember(document_formats()))
      ->capture_default_str();
  sub->add_option("--keep", o.keep,
                  "of documents: a regular expression (RE2) of what stays as it is, such as placeholders; may be repeated")
      ->allow_extra_args(false)
      ->type_name("REGEX");
  add_target_language_option(*sub, o.target_language);
  sub->add_option("--memory", o.memory,
                  "translation memory, TMX or lines with tabs: lines, or sentences of documents, that are in it get its translation");
  sub->add_option(
      "--glossary", o.glossary,
      "file of terms that must be translated as it says: lines of a term, a tab and its translation (docs/guides/glossaries.md)");
  sub->add_option("--source-language", o.source_language,
                  "of documents: code of their language, such as en or pt-BR; default: the model's. auto = lines, or sentences of "
                  "documents, that are clearly in another language than the model translates stay as they are");
  add_computing(*sub, o);
  sub->add_option("--parallel.tensor", o.shards,
                  "shards that each layer and vocabulary is cut into, on as many ranks of mpirun: for a model that does not fit one")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  sub->add_flag("--quiet", o.quiet, "no progress and no line about speed on standard error");
  sub->callback([a, most_tokens] {
    a->options.most_tokens_given = most_tokens->count() > 0;
    take_search(a->search, a->options);
    run_translate(a->options);
  });
}

}  // namespace starling
