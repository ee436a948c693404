#include "interop/import.h"

#include "storage/outputs.h"

namespace starling {

ImportedModel import_model(FileSystem& files, const ImportOptions& o) {
  if (files.exists(o.output)) throw ConfigError(fmt::format("{}: exists already; give --output a new name or remove it", o.output));
  refuse_run_files({"--output", o.output});
  check(o.languages, "import");
  const auto folder = open_foreign(files, o.from);
  if (!is_marian(*folder))
    throw ConfigError(fmt::format("{}: not a model that can be imported: no model.npz of Marian's or OPUS-MT is there", o.from));
  ImportedModel model = read_marian(files, *folder, o.vocabularies);
  model.languages = o.languages;
  refuse_own_input({"--output", o.output}, {{"the model", o.from}});
  files.make_directories(parent_path(o.output));
  publish_imported(files, o.output, model);
  return model;
}

}  // namespace starling
