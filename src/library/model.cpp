#include "starling/model.h"

#include "decode/framing.h"
#include "exporting/export.h"
#include "interop/usable_model.h"
#include "library/describe.h"
#include "library/guarded.h"

namespace starling {

v0::ModelInfo info_of(const ModelDescription& d) {
  v0::ModelInfo info{.directory = d.directory,
                     .architecture = architecture_of(d.config.preset) == Architecture::gnmt ? "gnmt" : "transformer",
                     .step = d.step,
                     .quantized = d.quantized,
                     .source_pieces = d.vocabularies.source().size(),
                     .target_pieces = d.vocabularies.target().size(),
                     .reads_source_end = d.config.source_end,
                     .unknown_token = d.vocabularies.target().token(d.vocabularies.target().unk()),
                     .end_token = d.vocabularies.target().token(d.vocabularies.target().eos())};
  for (const std::string& each : languages_with_tags(d).directions) {
    auto [source, target] = parse_direction(each, "directions");
    info.directions.push_back({std::move(source), std::move(target)});
  }
  if (info.directions.empty() && !d.languages.target.empty()) info.directions.push_back({d.languages.source, d.languages.target});
  return info;
}

v0::ModelInfo v0::describe_model(const std::string& path) {
  return guarded([&] {
    const auto files = real_file_system();
    return info_of(starling::describe_model(*files, usable_model(*files, path, [](const std::string&) {})));
  });
}

void v0::export_model(const std::string& path, const std::string& format, const std::string& output, bool int8) {
  guarded([&] {
    const auto files = real_file_system();
    starling::export_model(*files, {.model = path, .output = output, .to = from_word<Program>(format), .integers = int8});
  });
}

}  // namespace starling
