#include "interop/import.h"

#include "interop/ct2.h"
#include "interop/marian.h"
#include "storage/outputs.h"

namespace starling {

ImportedModel import_model(FileSystem& files, const ImportOptions& o) {
  if (files.exists(o.output)) throw ConfigError(fmt::format("{}: exists already; give --output a new name or remove it", o.output));
  refuse_run_files({"--output", o.output});
  check(o.languages, "import");
  const auto folder = open_foreign(files, o.from);
  const auto ct2 = find_ct2(files, *folder);
  const auto marian = ct2 ? std::nullopt : find_marian(files, *folder);
  if (!ct2 && !marian)
    throw ConfigError(
        fmt::format("{}: not a model that can be imported: neither CTranslate2's model.bin nor a model.npz or .bin of Marian, OPUS-MT or "
                    "Firefox is there",
                    o.from));
  ImportedModel model = ct2 ? read_ct2_model(files, *folder, *ct2, o.vocabularies) : read_marian(files, *folder, *marian, o.vocabularies);
  if (!o.languages.source.empty()) model.languages.source = o.languages.source;
  if (!o.languages.target.empty()) model.languages.target = o.languages.target;
  refuse_own_input({"--output", o.output}, {{"the model", o.from}});
  files.make_directories(parent_path(o.output));
  publish_imported(files, o.output, model);
  return model;
}

}  // namespace starling
