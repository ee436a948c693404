// The verb `starling import`: makes a model directory of a model that another program trained.
#include "interop/import.h"

#include <iostream>

#include "cli/verbs.h"
#include "interop/describe_import.h"

namespace starling {
namespace {

void run_import(const ImportOptions& o) {
  const auto files = real_file_system();
  std::cout << import_text(import_model(*files, o), o.output);
}

}  // namespace

void add_import(CLI::App& app) {
  auto* sub =
      app.add_subcommand("import", "make a model directory of a model of CTranslate2, Argos, Hugging Face, Marian, OPUS-MT or Firefox");
  auto o = std::make_shared<ImportOptions>();
  sub->add_option("from", o->from, "folder, zip archive, .argosmodel, model.npz or .bin")->required();
  sub->add_option("-o,--output", o->output, "model directory to write; must not exist")->required();
  sub->add_option("--vocab,--source-vocab", o->vocabularies.source,
                  "SentencePiece model or codes of subword-nmt, if the folder does not name it");
  sub->add_option("--target-vocab", o->vocabularies.target, "the target's; default: the source's");
  sub->add_option("--numbers,--source-numbers", o->vocabularies.source_numbers,
                  "vocab.yml with the numbers of the pieces, if they are not those of the SentencePiece model");
  sub->add_option("--target-numbers", o->vocabularies.target_numbers, "the target's; default: the source's");
  sub->add_option("--source-language", o->languages.source,
                  "code of the source's language, kept with the model; selects the tag that M2M-100 and NLLB need");
  sub->add_option("--target-language", o->languages.target, "code of the target's language; selects the tag that models of several need");
  sub->callback([o] { run_import(*o); });
}

}  // namespace starling
