#include "train/run_vocabulary.h"

#include <fmt/format.h>

#include "text/normalization.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

// What has no effect on a vocabulary that exists must not stand in config.yml as if it had.
// `source`: of the target side, the other vocabulary; a setting in which the two differ cannot be told by one key and is not compared.
void require_settings(const VocabularyOptions& options, const Vocabulary& vocabulary, const std::string& of, const std::string& otherwise,
                      const Vocabulary* source = nullptr) {
  const auto made = vocabulary_format::settings(vocabulary.bytes());
  if (!made) return;
  const auto other = source ? vocabulary_format::settings(source->bytes()) : made;
  if (!other) return;
  const auto differs = [&](const char* key, const auto& now, const auto& then) {
    throw ConfigError(
        fmt::format("vocab.{0} is {1}, but {2} was made with vocab.{0} {3}, and stays as it is; set it to {3} or leave it out{4}", key, now,
                    of, then, otherwise));
  };
  // Older vocabularies do not tell how many pieces were asked for, only how many they have.
  const int64_t size = made->asked_size > 0 ? made->asked_size : std::max(options.size, made->size);
  const bool one_size = made->asked_size == other->asked_size && (made->asked_size > 0 || made->size == other->size);
  if (one_size && options.size != size) differs("size", options.size, made->asked_size > 0 ? size : made->size);
  if (options.type != made->type && made->type == other->type && (made->type == "unigram" || made->type == "bpe"))
    differs("type", options.type, made->type);
  const auto coverage = static_cast<float>(made->character_coverage);
  if (static_cast<float>(options.character_coverage) != coverage && static_cast<float>(other->character_coverage) == coverage)
    differs("character-coverage", fmt::format("{:g}", options.character_coverage), fmt::format("{:g}", made->character_coverage));
}

// Vocabularies are trained when their file is missing.
Vocabulary open_vocabulary(const Config& c, FileSystem& files, const std::string& path, Side side, const Say& say,
                           const Vocabulary* source = nullptr) {
  if (files.exists(path)) {
    Vocabulary vocabulary = Vocabulary::load(path);
    require_settings(c.vocab.training, vocabulary, path, fmt::format(", or remove {} to have another one trained", path), source);
    const auto made = vocabulary_format::settings(vocabulary.bytes());
    if (made && !made->normalization.empty() && made->normalization != c.vocab.training.normalization)
      say(fmt::format("vocabulary {}: keeps its own normalization {}; vocab.normalization {} is for vocabularies that are trained", path,
                      made->normalization, c.vocab.training.normalization));
    return vocabulary;
  }
  const double start = steady_seconds();
  say(fmt::format("vocabulary {}: training {} with {} pieces; normalization {}", path, c.vocab.training.type, c.vocab.training.size,
                  describe_normalization(c.vocab.training.normalization)));
  files.make_directories(parent_path(path));
  VocabularyOptions options = c.vocab.training;
  options.seed = c.train.seed;
  const CorpusLines lines(c.data, side);
  VocabularyWatch watch;
  watch.say = say;
  watch.fraction = [&] { return lines.fraction(); };
  const VocabularyReport report = train_vocabulary(lines, options, path, watch);
  say(fmt::format("vocabulary {}: {} pieces{} from {} different lines, {} of {} read, in {:.1f} s", path, report.size,
                  report.size < options.size ? " (the text holds no more)" : "", report.sampled, report.stands_for, report.lines,
                  steady_seconds() - start));
  return Vocabulary::load(path);
}

std::string source_path(const Config& c) {
  return c.vocab.source.empty() ? join_path(c.train.output, c.vocab.joint ? "vocab.spm" : "source.spm") : c.vocab.source;
}
std::string target_path(const Config& c) { return c.vocab.target.empty() ? join_path(c.train.output, "target.spm") : c.vocab.target; }

}  // namespace

std::vector<std::string> vocabulary_paths(const Config& c) {
  if (c.vocab.joint) return {source_path(c)};
  return {source_path(c), target_path(c)};
}

Vocabularies open_vocabularies(const Config& c, FileSystem& files, const Say& say) {
  if (c.vocab.joint) return {open_vocabulary(c, files, source_path(c), Side::both, say), std::nullopt};
  Vocabulary source = open_vocabulary(c, files, source_path(c), Side::source, say);
  Vocabulary target = open_vocabulary(c, files, target_path(c), Side::target, say, &source);
  return {std::move(source), std::move(target)};
}

void adopt_vocabularies(const Config& c, FileSystem& files, const Vocabularies& vocabularies, const std::string& owner) {
  if (c.vocab.joint != vocabularies.joint())
    throw ConfigError(fmt::format("{} has {}; set vocab.joint to {} or leave it out", owner,
                                  vocabularies.joint() ? "one vocabulary for both sides" : "a vocabulary for each side",
                                  vocabularies.joint()));
  const auto adopt = [&](const std::string& path, const Vocabulary& vocabulary, const Vocabulary* source) {
    require_settings(c.vocab.training, vocabulary, "the vocabulary of " + owner, "", source);
    if (!files.exists(path)) {
      files.make_directories(parent_path(path));
      files.replace_file(path, vocabulary.bytes());
    } else if (Vocabulary::load(path).hash() != vocabulary.hash()) {
      throw ConfigError(
          fmt::format("{0} is not the vocabulary of {1}; leave vocab.source and vocab.target empty or, if they are, remove {0} (the model "
                      "has a copy of its vocabulary) or choose another train.output",
                      path, owner));
    }
  };
  adopt(source_path(c), vocabularies.source(), nullptr);
  if (!vocabularies.joint()) adopt(target_path(c), vocabularies.target(), &vocabularies.source());
}

void copy_settings(const Vocabulary& vocabulary, VocabConfig& to) {
  const auto made = vocabulary_format::settings(vocabulary.bytes());
  if (!made) return;
  to.training.size = made->asked_size > 0 ? made->asked_size : made->size;
  if (made->type == "unigram" || made->type == "bpe") to.training.type = made->type;
  for (const char* name : kNormalizations)
    if (made->normalization == name) to.training.normalization = name;
  if (static_cast<float>(to.training.character_coverage) != static_cast<float>(made->character_coverage))
    to.training.character_coverage = made->character_coverage;
}

}  // namespace starling
