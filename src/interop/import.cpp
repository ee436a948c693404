#include "interop/import.h"

#include <algorithm>

#include "base/memory.h"
#include "base/resource_error.h"
#include "interop/ct2.h"
#include "interop/hf.h"
#include "interop/marian.h"
#include "interop/recognise.h"
#include "storage/outputs.h"

namespace starling {

namespace {

ImportedModel import_from(FileSystem& files, const ImportOptions& o) {
  if (files.exists(o.output)) throw ConfigError(fmt::format("{}: exists already; give --output a new name or remove it", o.output));
  refuse_run_files({"--output", o.output});
  Languages languages = o.languages;  // eng_Latn, as NLLB writes it, is eng-Latn
  for (std::string* code : {&languages.source, &languages.target}) std::replace(code->begin(), code->end(), '_', '-');
  check(languages, "import");
  const RecognisedModel m = recognise(files, o.from);
  if (m.kind == ModelKind::ours)
    throw ConfigError(fmt::format("{}: is already a Starling model; translate, serve, score and export take it as it is", o.from));
  if (const VocabularyFiles& v = o.vocabularies; m.kind != ModelKind::marian && !(v.source_numbers + v.target_numbers).empty())
    throw ConfigError(fmt::format("{}: --numbers is for Marian models; this one has its own list of pieces: leave it out", o.from));
  ImportedModel model = m.kind == ModelKind::ct2
                            ? read_ct2_model(files, *m.folder, read_foreign(files, *m.folder, m.weights), o.vocabularies, languages)
                        : m.kind == ModelKind::hf ? read_hf(files, *m.folder, o.vocabularies, languages)
                                                  : read_marian(files, *m.folder, m.marian, o.vocabularies, languages);
  set_typed_tag(model, languages.target);
  if (!languages.source.empty()) model.languages.source = languages.source;
  if (!languages.target.empty()) model.languages.target = languages.target;
  refuse_own_input({"--output", o.output}, {{"the model", o.from}});
  files.make_directories(parent_path(o.output));
  publish_imported(files, o.output, model);
  return model;
}

}  // namespace

ImportedModel import_model(FileSystem& files, const ImportOptions& o) {
  try {
    return import_from(files, o);
  } catch (const std::bad_alloc&) {
    throw ResourceError(fmt::format("{}: the model does not fit into memory while it is imported; {}", o.from, usable_memory().text()));
  }
}

}  // namespace starling
