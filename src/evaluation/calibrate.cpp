#include "evaluation/calibrate.h"

#include <filesystem>

#include "base/messages.h"
#include "base/stop_note.h"
#include "decode/cut_warning.h"
#include "decode/framing.h"
#include "evaluation/development_text.h"
#include "evaluation/text_roles.h"
#include "storage/outputs.h"

namespace starling {
namespace {

std::vector<JudgedSentence> judged(const LoadedModel& loaded, const CalibrateOptions& a, const DevelopmentText& text,
                                   const TaskScreen& screen) {
  const ModelDescription& d = loaded.description;
  SearchOptions search = with_prefixes(into_language(d.search, d, a.target_language), d.vocabularies);
  search.n_best = 1;
  const std::string doubt =
      doubt_about_sides(*loaded.model, d.vocabularies, a.source, a.target, text.sources, text.references, search.source_prefix_ids);
  if (!doubt.empty()) tell("starling: warning: {}\n", doubt);
  Translator translator(*loaded.model, d.vocabularies, search, a.batch_sentences, a.max_source_tokens);
  std::vector<std::vector<Translation>> translations;
  {
    TaskProgress progress("calibrate", screen);
    translator.set_watch({.stop = {}, .translated = [&](double share) {
                            if (progress.due()) progress.tell(share, "");
                          }});
    translations = translator.translate(text.sources);
  }
  tell("{}{}", translator.tag_warning(), cut_warning(translator, a.max_source_tokens, "split them"));
  std::vector<JudgedSentence> all;
  for (size_t i = 0; i < translations.size(); ++i)
    all.push_back(judge(translations[i].front().hypothesis, d.vocabularies.target(), text.references[i]));
  return all;
}

nlohmann::ordered_json report(const CalibrateOptions& a, const LoadedModel& loaded, const ConfidenceQuality& q) {
  const SearchOptions& search = loaded.description.search;
  return {{"source", a.source},       {"target", a.target},
          {"sentences", q.sentences}, {"words", q.words},
          {"right", q.right},         {"precision", loaded.precision},
          {"beam", search.beam},      {"calibration_error", {{"words", q.of_words.error}, {"sentences", q.of_sentences.error}}},
          {"area_under_curve", q.auc}};
}

}  // namespace

CalibrateResult calibrate_model(FileSystem& files, const CalibrateOptions& a, const TaskScreen& screen) {
  const LoadedModel loaded = load_model(files, a.model, a.compute);
  const std::string directory = std::filesystem::canonical(loaded.description.directory).string();  // itself, never a link to it
  const bool writes = !a.dry_run && !a.measure;
  const std::vector<NamedPath> inputs{{"--source", a.source}, {"--target", a.target}};
  for (const char* name : {kConfidenceFile, "manifest.json"})
    if (writes) refuse_own_input({"what is written", join_path(directory, name)}, inputs);
  if (a.measure) loaded.confidence.require();
  const auto lock = writes ? reserve_model(files, directory, "use --dry-run, or import the model again with 'starling import'") : nullptr;
  const std::vector<JudgedSentence> sentences = judged(loaded, a, read_development_text(a.source, a.target), screen);
  if (a.measure) return {measure_confidence(loaded.confidence.require(), sentences), ""};
  ConfidenceModel model;
  try {
    model = fit_confidence(sentences);
  } catch (const DataError& e) {
    throw DataError(fmt::format("{}: {}", a.source, e.what()));
  }
  CalibrateResult result{cross_measured_confidence(sentences), ""};
  if (!writes) return result;
  model.fitted_on = report(a, loaded, result.quality);
  const std::vector<Part> parts{confidence_part(model, model_digest(files, join_path(directory, "model.safetensors")))};
  result.written = join_path(loaded.description.directory, kConfidenceFile);
  WholeWrite write;
  update_directory(files, directory, parts);
  write.done(fmt::format("the calibration is in {}", result.written));
  return result;
}

}  // namespace starling
