// The verb `starling export`: writes a model in the format of another program.
#include "exporting/export.h"

#include <iostream>

#include "cli/verbs.h"

namespace starling {
namespace {

void run_export(ExportOptions o, const std::string& format) {
  o.to = from_word<Program>(format);
  const auto files = real_file_system();
  for (const std::string& line : export_model(*files, o)) std::cout << line << '\n';
}

}  // namespace

void add_export(CLI::App& app) {
  auto* sub = app.add_subcommand("export", "write a model in the format of CTranslate2, Argos, Hugging Face, Marian or Firefox");
  auto o = std::make_shared<ExportOptions>();
  auto format = std::make_shared<std::string>();
  sub->add_option("-m,--model", o->model, "run directory, checkpoint or model directory")->required();
  sub->add_option("--to", *format,
                  "ctranslate2: a directory; argos: an .argosmodel; marian: model.npz; bergamot: model.bin, for Firefox too; "
                  "huggingface: a folder for transformers")
      ->required()
      ->check(CLI::IsMember(words(Program())));
  sub->add_option("-o,--output", o->output, "directory (argos: file) to write; must not exist")->required();
  sub->add_flag("--int8", o->integers, "matrices as 8-bit integers");
  sub->add_option("--source-language", o->languages.source, "code of the source's language; default: the model's");
  sub->add_option("--target-language", o->languages.target, "code of the target's language; default: the model's");
  sub->callback([o, format] { run_export(*o, *format); });
}

}  // namespace starling
