#include "interop/import.h"

#include <algorithm>

#include "interop/ct2.h"
#include "interop/hf.h"
#include "interop/marian.h"
#include "storage/outputs.h"

namespace starling {

ImportedModel import_model(FileSystem& files, const ImportOptions& o) {
  if (files.exists(o.output)) throw ConfigError(fmt::format("{}: exists already; give --output a new name or remove it", o.output));
  refuse_run_files({"--output", o.output});
  Languages languages = o.languages;  // eng_Latn, as NLLB writes it, is eng-Latn
  for (std::string* code : {&languages.source, &languages.target}) std::replace(code->begin(), code->end(), '_', '-');
  check(languages, "import");
  const auto folder = open_foreign(files, o.from);
  const auto ct2 = find_ct2(files, *folder);
  const bool hf = !ct2 && is_hf(*folder);
  const auto marian = ct2 || hf ? std::nullopt : find_marian(files, *folder);
  if (!ct2 && !hf && !marian)
    throw ConfigError(fmt::format(
        "{}: not a model that can be imported: neither CTranslate2's model.bin, nor Hugging Face's config.json with safetensors, "
        "nor a model.npz or .bin of Marian, OPUS-MT or Firefox is there",
        o.from));
  ImportedModel model = ct2  ? read_ct2_model(files, *folder, *ct2, o.vocabularies)
                        : hf ? read_hf(files, *folder, o.vocabularies, languages)
                             : read_marian(files, *folder, *marian, o.vocabularies);
  if (!languages.source.empty()) model.languages.source = languages.source;
  if (!languages.target.empty()) model.languages.target = languages.target;
  refuse_own_input({"--output", o.output}, {{"the model", o.from}});
  files.make_directories(parent_path(o.output));
  publish_imported(files, o.output, model);
  return model;
}

}  // namespace starling
