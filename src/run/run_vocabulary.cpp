#include "run/run_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/push_once.h"
#include "base/quotes.h"
#include "data/text_stream.h"
#include "storage/outputs.h"
#include "text/normalization.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

bool is_known(const std::string& normalization) {
  return std::find(std::begin(kNormalizations), std::end(kNormalizations), normalization) != std::end(kNormalizations);
}

// A setting without effect on an existing vocabulary must not stand in config.yml as if it had one.
// `source`: for the target side, the other vocabulary; a setting in which the two differ cannot be expressed by one key and is not
// compared.
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
  // Older vocabularies do not record how many pieces were asked for, only how many they have.
  const int64_t size = made->asked_size > 0 ? made->asked_size : std::max(options.size, made->size);
  const bool one_size = made->asked_size == other->asked_size && (made->asked_size > 0 || made->size == other->size);
  if (one_size && options.size != size) differs("size", options.size, made->asked_size > 0 ? size : made->size);
  if (options.type != made->type && made->type == other->type && (made->type == "unigram" || made->type == "bpe"))
    differs("type", options.type, made->type);
  const std::string& rule = made->normalization;
  if (options.normalization != rule && rule == other->normalization && is_known(rule))
    differs("normalization", options.normalization, rule);
  const auto coverage = static_cast<float>(made->character_coverage);
  if (static_cast<float>(options.character_coverage) != coverage && static_cast<float>(other->character_coverage) == coverage)
    differs("character-coverage", fmt::format("{:g}", options.character_coverage), fmt::format("{:g}", made->character_coverage));
}

// A model of several target languages needs their tags among the source's pieces.
void require_tags(const Config& c, const Vocabulary& source, const std::string& of, const char* mend) {
  for (const std::string& tag : language_tags(c.languages))
    if (source.id_of(tag) < 0)
      throw ConfigError(fmt::format("{} has no piece {}, the tag for translating into that language; {}", of, tag, mend));
}

// What stands in front of sources, and for no text: the tags of languages, and those that corpora have.
std::vector<std::string> symbols_of(const Config& c) {
  std::vector<std::string> symbols = language_tags(c.languages);
  for (const CorpusFiles& corpus : c.data.train) {
    std::istringstream tags(corpus.tag);
    for (std::string tag; tags >> tag;) {
      if (tag.find(',') != std::string::npos || tag == "<unk>" || tag == "<s>" || tag == "</s>")
        throw ConfigError(
            fmt::format("data.train: {} cannot be a tag of a new vocabulary: it has a comma, or means something else; name "
                        "another, such as <bt>",
                        in_quotes(tag)));
      if (std::find(c.vocab.training.whole.begin(), c.vocab.training.whole.end(), tag) == c.vocab.training.whole.end())
        push_once(symbols, tag);
    }
  }
  return symbols;
}

// Whether the file is, or would be, in the run directory.
bool is_inside(const Config& c, const std::string& path) { return lies_in(real_path(path), real_path(c.train.output)); }

std::string name_inside(const Config& c, Side side) {
  return join_path(c.train.output, c.vocab.joint ? "vocab.spm" : side == Side::target ? "target.spm" : "source.spm");
}

std::string path_of(const Config& c, Side side) {
  const std::string& given = side == Side::target ? c.vocab.target : c.vocab.source;
  return given.empty() ? name_inside(c, side) : given;
}

// Where the vocabulary is trained if its file is missing.
std::string training_path(const Config& c, Side side) {
  const std::string path = path_of(c, side);
  return is_inside(c, path) ? path : name_inside(c, side) + ".new";
}

std::vector<Side> sides_of(const Config& c) {
  if (c.vocab.joint) return {Side::both};
  return {Side::source, Side::target};
}

// Loads an existing vocabulary; `source`: as in require_settings.
Vocabulary use(const Config& c, const std::string& path, const Say& say, const Vocabulary* source) {
  Vocabulary vocabulary = Vocabulary::load(path);
  require_settings(c.vocab.training, vocabulary, path, fmt::format(", or remove {} to train a new one", path), source);
  const auto made = vocabulary_format::settings(vocabulary.bytes());
  if (made && !made->normalization.empty() && made->normalization != c.vocab.training.normalization)
    say(fmt::format("vocabulary {}: keeps its own normalization {}; vocab.normalization {} only applies to newly trained ones", path,
                    made->normalization, c.vocab.training.normalization));
  return vocabulary;
}

Vocabulary open_vocabulary(const Config& c, FileSystem& files, Side side, const Say& say, const Vocabulary* source = nullptr) {
  const std::string path = training_path(c, side);
  for (const std::string& there : {path_of(c, side), path})
    if (files.exists(there)) {
      Vocabulary vocabulary = use(c, there, say, source);
      if (side != Side::target) require_tags(c, vocabulary, there, "remove it to train a new one");
      say(fmt::format("vocabulary {}: exists already, {} pieces; remove it to train a new one on this text", there, vocabulary.size()));
      return vocabulary;
    }
  const double start = steady_seconds();
  const std::string name = path_of(c, side);
  if (is_stream(c.data))
    throw ConfigError(
        fmt::format("the training text comes from a pipe, on which no vocabulary can be trained, and there is no {}; name an "
                    "existing one: --{} FILE",
                    name, side == Side::target ? "vocab.target" : "vocab.source"));
  say(fmt::format("vocabulary {}: training {} with {} pieces; normalization {}", name, c.vocab.training.type, c.vocab.training.size,
                  describe_normalization(c.vocab.training.normalization)));
  files.make_directories(parent_path(path));
  VocabularyOptions options = c.vocab.training;
  options.seed = c.train.seed;
  if (side != Side::target) options.symbols = symbols_of(c);
  const CorpusLines lines(c.data, side);
  VocabularyWatch watch;
  watch.say = say;
  watch.fraction = [&] { return lines.fraction(); };
  const VocabularyReport report = train_vocabulary(lines, options, path, watch);
  say(fmt::format("vocabulary {}: {} pieces{} from {} different lines, {} of {} read, in {:.1f} s", name, report.size,
                  report.size < options.size ? " (the text holds no more)" : "", report.sampled, report.stands_for, report.lines,
                  steady_seconds() - start));
  return Vocabulary::load(path);
}

}  // namespace

std::vector<std::string> vocabulary_paths(const Config& c) {
  std::vector<std::string> paths;
  for (const Side side : sides_of(c)) paths.push_back(path_of(c, side));
  return paths;
}

std::vector<std::string> vocabularies_to_train(const Config& c, FileSystem& files) {
  std::vector<std::string> paths;
  for (const Side side : sides_of(c))
    if (const std::string path = training_path(c, side); !files.exists(path_of(c, side)) && !files.exists(path)) paths.push_back(path);
  return paths;
}

Vocabularies open_vocabularies(const Config& c, FileSystem& files, const Say& say) {
  if (c.vocab.joint) return {open_vocabulary(c, files, Side::both, say), std::nullopt};
  Vocabulary source = open_vocabulary(c, files, Side::source, say);
  Vocabulary target = open_vocabulary(c, files, Side::target, say, &source);
  return {std::move(source), std::move(target)};
}

Vocabularies adopt_vocabularies(const Config& c, FileSystem& files, const Vocabularies& vocabularies, const std::string& owner) {
  if (c.vocab.joint != vocabularies.joint())
    throw ConfigError(fmt::format("{} has {}; set vocab.joint to {} or leave it out", owner,
                                  vocabularies.joint() ? "one vocabulary for both sides" : "a vocabulary for each side",
                                  vocabularies.joint()));
  const auto adopt = [&](Side side, const Vocabulary& vocabulary, const Vocabulary* source) {
    require_settings(c.vocab.training, vocabulary, "the vocabulary of " + owner, "", source);
    if (side != Side::target)
      require_tags(c, vocabulary, "the vocabulary of " + owner, "start with a model that was trained for these languages");
    const std::string path = path_of(c, side);
    if (files.exists(path) && Vocabulary::load(path).hash() != vocabulary.hash())
      throw ConfigError(
          fmt::format("{0} is not the vocabulary of {1}; leave vocab.source and vocab.target empty or, if they are, remove {0} (the model "
                      "has a copy of its vocabulary) or choose another train.output",
                      path, owner));
    return Vocabulary::from_bytes(vocabulary.bytes(), "the vocabulary of " + owner);
  };
  if (c.vocab.joint) return {adopt(Side::both, vocabularies.source(), nullptr), std::nullopt};
  Vocabulary source = adopt(Side::source, vocabularies.source(), nullptr);
  return {std::move(source), adopt(Side::target, vocabularies.target(), &vocabularies.source())};
}

void publish_vocabularies(const Config& c, FileSystem& files, const Vocabularies& vocabularies) {
  for (const Side side : sides_of(c)) {
    const Vocabulary& vocabulary = side == Side::target ? vocabularies.target() : vocabularies.source();
    const std::string path = path_of(c, side), trained = training_path(c, side);
    if (!files.exists(path)) {
      files.make_directories(parent_path(path));
      files.replace_file(path, vocabulary.bytes());
    } else if (Vocabulary::load(path).hash() != vocabulary.hash()) {
      throw ConfigError(
          fmt::format("{}: another run has made this vocabulary in the meantime; start again to use it, or name another file", path));
    }
    if (trained != path) files.remove(trained);
  }
}

void copy_normalization(const std::string& bytes, VocabConfig& to) {
  const auto made = vocabulary_format::settings(bytes);
  if (made && is_known(made->normalization)) to.training.normalization = made->normalization;
}

void copy_settings(const Vocabulary& vocabulary, VocabConfig& to) {
  const auto made = vocabulary_format::settings(vocabulary.bytes());
  if (!made) return;
  to.training.size = made->asked_size > 0 ? made->asked_size : made->size;
  if (made->type == "unigram" || made->type == "bpe") to.training.type = made->type;
  copy_normalization(vocabulary.bytes(), to);
  if (static_cast<float>(to.training.character_coverage) != static_cast<float>(made->character_coverage))
    to.training.character_coverage = made->character_coverage;
}

}  // namespace starling
