// The verb `starling translate`: translates lines or documents in order. A separate thread reads lines (data/line_queue.h), so that a pipe
// is answered as soon as a line arrives while a file is translated in large batches.
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <deque>
#include <numeric>
#include <optional>

#include "base/counted.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/resource_error.h"
#include "base/stop_note.h"
#include "base/task_progress.h"
#include "cli/translate_arguments.h"
#include "cli/verbs.h"
#include "comm/shard_communicator.h"
#include "comm/threads.h"
#include "comm/world.h"
#include "data/line_queue.h"
#include "data/line_reader.h"
#include "data/whole_text.h"
#include "decode/document_translation.h"
#include "decode/framing.h"
#include "decode/translation_lines.h"
#include "document/sentences.h"
#include "formats/file_format.h"
#include "interop/usable_model.h"
#include "program/help.h"
#include "storage/outputs.h"
#include "storage/result_file.h"

namespace starling {
namespace {

// The ranks that hold the shards of the model. The first one reads and writes, and broadcasts what it reads, so that all ranks translate
// the same lines together.
class Shards {
 public:
  explicit Shards(int64_t shards) {
    if (shards == 1) return;
    world_.emplace(make_mpi_world());
    if (comm().size() != shards)
      throw ConfigError(fmt::format("--parallel.tensor {} divides the model among {} ranks, and {} {} started; start it with mpirun -n {}",
                                    shards, shards, comm().size(), comm().size() == 1 ? "was" : "were", shards));
    comm().set_deadline(kNoDeadline);  // the first rank waits for its input
    group_.emplace(comm());
  }
  bool first() const { return !world_ || world_->comm->rank() == 0; }
  ShardGroup* group() { return group_ ? &*group_ : nullptr; }
  int threads(int asked) { return world_ && asked == 0 ? threads_for_rank(comm()) : asked; }

  int processes() const { return world_ ? world_->local_size : 1; }

  // Returns the first rank's choice of model on all ranks: a run directory's best checkpoint may be replaced in the meantime, and "auto"
  // means different precisions on different processors.
  ModelDescription describe(FileSystem& files, const std::string& path, DeviceChoice& choice) {
    if (!world_) return describe_model(files, path);
    std::optional<ModelDescription> own;
    if (first()) {
      own.emplace(describe_model(files, path));
      choice = resolve(choice, own->quantized, world_->local_rank);
    }
    choice.precision = broadcast_text(comm(), choice.precision);
    const std::string directory = broadcast_text(comm(), own ? own->directory : ""),
                      step = broadcast_text(comm(), own ? std::to_string(own->step) : "");
    if (!own) own.emplace(read_description(files, directory));
    for (const std::string& each : gather_texts(comm(), std::to_string(own->step)))
      if (each != step) throw DataError(fmt::format("{}: the model was replaced while the ranks were reading it; start again", directory));
    return std::move(*own);
  }

  // Returns the result of the first rank's take() on all ranks.
  template <class Take>
  std::vector<std::string> lines(Take take) {
    if (!world_) return take();
    std::string text;
    if (first())
      for (const std::string& line : take()) text += line + "\n";
    text = broadcast_text(comm(), text);
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) lines.push_back(text.substr(at, text.find('\n', at) - at));
    return lines;
  }

 private:
  Communicator& comm() { return *world_->comm; }
  std::optional<World> world_;
  std::optional<ShardCommunicator> group_;
};

// Writes translations as lines of text or as n-best lists, or documents.
class Output : public ResultFile {
 public:
  using ResultFile::ResultFile;
  // `kept` are lines that are their own translations, if not empty.
  void write(std::span<std::vector<Translation>> translations, std::span<const std::string> lines, std::span<const std::string> kept,
             const Translator& translator, const TranslateArguments& a) {
    std::ostream& out = stream();
    LineFormat format = a.lines;
    format.list = a.n_best > 1;
    format.confidence = confidence_;
    for (size_t i = 0; i < translations.size(); ++i) {
      if (!kept[i].empty()) translations[i].front().text = kept[i];
      out << translation_lines(translations[i], count_++, lines[i], translator, format);
    }
    flush(count_);
  }
  void write(std::string_view document, int64_t sentences) {
    stream() << document;
    count_ += sentences;
    flush(count_);
  }
  int64_t count() const { return count_; }
  void set_confidence(const ConfidenceModel* confidence) { confidence_ = confidence; }

 private:
  int64_t count_ = 0;
  const ConfidenceModel* confidence_ = nullptr;
};

// Refuses to overwrite an input. Called before anything is loaded, and again when the model's directory is known.
void refuse_own_inputs(const TranslateArguments& a, const std::string& written, const std::string& model) {
  std::vector<NamedPath> inputs;
  for (const std::string& input : a.inputs) inputs.push_back({input == "-" ? "standard input" : "--input", input});
  if (!model.empty()) inputs.push_back({"--model", model});
  if (!a.prefix_file.empty()) inputs.push_back({"--prefix-file", a.prefix_file});
  if (!a.glossary.empty()) inputs.push_back({"--glossary", a.glossary});
  if (!a.memory.empty()) inputs.push_back({"--memory", a.memory});
  for (const std::string& path : {a.output, written}) refuse_own_input({path == "-" ? "standard output" : "--output", path}, inputs);
  refuse_run_files({a.output == "-" ? "standard output" : "--output", a.output});
}

// Says where lines were cut: at what was asked for, or at what the model can read.
std::string cut_warning(const Translator& translator, int64_t asked) {
  const int64_t most = translator.most_text_tokens(), read = translator.most_source_tokens();
  const std::string cut = fmt::format("warning: {} {} cut at {} source tokens", counted(translator.truncated(), "sentence"),
                                      translator.truncated() == 1 ? "was" : "were", most);
  return read < asked ? fmt::format("{}, since the model has {} positions; use --document\n", cut, read + 1)
                      : cut + "; raise --max-source-tokens\n";
}

// Returns the total size of the inputs, or 0 if one is not a regular file, such as a pipe of unknown length.
uint64_t bytes_of(const std::vector<std::string>& inputs) {
  uint64_t bytes = 0;
  for (const std::string& input : inputs) {
    struct stat s {};
    if ((input == "-" ? fstat(STDIN_FILENO, &s) : stat(input.c_str(), &s)) != 0 || !S_ISREG(s.st_mode)) return 0;
    bytes += static_cast<uint64_t>(s.st_size);
  }
  return bytes;
}

// Cuts lines at their tab and returns what stands behind it. A line without one, or with several, and those after it are dropped; then
// `wrong` says why. `first` is the number of the first line.
std::vector<std::string> cut_beginnings(std::vector<std::string>& lines, const std::string& input, int64_t first, std::string& wrong) {
  std::vector<std::string> beginnings;
  for (std::string& line : lines) {
    const size_t tab = line.find('\t'), second = tab == std::string::npos ? tab : line.find('\t', tab + 1);
    if ((tab == std::string::npos && !line.empty()) || second != std::string::npos) {
      wrong = fmt::format("{}:{}: {} instead of one; with --tsv each line is a source, a tab and a beginning, which may be empty", input,
                          first + std::ssize(beginnings), tab == std::string::npos ? "no tab" : "several tabs");
      break;
    }
    beginnings.push_back(tab == std::string::npos ? "" : line.substr(tab + 1));
    if (tab != std::string::npos) line.resize(tab);
  }
  lines.resize(beginnings.size());
  return beginnings;
}

// Returns the beginnings of the next lines, in the same way. There must be as many as lines in all.
std::vector<std::string> next_beginnings(LineReader& file, std::vector<std::string>& lines, std::string& wrong) {
  std::vector<std::string> beginnings;
  std::string_view line;
  while (beginnings.size() < lines.size() && file.next(line)) beginnings.emplace_back(line);
  if (beginnings.size() < lines.size())
    wrong = fmt::format("{}: {} for more lines of input; give one for each, which may be empty", file.path(),
                        counted(file.line_number(), "beginning"));
  lines.resize(beginnings.size());
  return beginnings;
}

// Takes the lines out that have no letter, and no beginning of a translation.
std::vector<std::string> take_lines_without_letters(std::vector<std::string>& lines, std::span<const std::string> beginnings) {
  std::vector<std::string> kept(lines.size());
  for (size_t i = 0; i < lines.size(); ++i)
    if (!has_letter(lines[i]) && (beginnings.empty() || beginnings[i].empty())) std::swap(lines[i], kept[i]);
  return kept;
}

std::vector<double> shares_of(std::vector<double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& w : weights) w /= sum;
  return weights;
}

void run_translate(const TranslateArguments& a) {
  const auto files = real_file_system();
  Shards shards(a.shards);
  Output output(shards.first() ? a.output : "-");
  const char* const what = "translations";
  StopNote note(shards.first() ? output.stopped(what, 0) : "");
  refuse_own_inputs(a, output.written_path(), "");
  DeviceChoice choice = a.compute;
  choice.threads = shards.threads(choice.threads);
  if (const std::string why = why_no_card(choice); shards.first() && !a.quiet && !why.empty()) tell("{}\n", why);
  const auto usable = [&](const std::string& model) {
    return usable_model(*files, model, [&](const std::string& line) {
      if (shards.first() && !a.quiet) tell("{}\n", line);
    });
  };
  ModelDescription description = shards.describe(*files, usable(a.models.front()), choice);
  const LoadedModel loaded = load_model(*files, std::move(description), choice, shards.group());
  refuse_own_inputs(a, output.written_path(), loaded.description.directory);
  if (a.confidence) output.set_confidence(&loaded.confidence.require());
  std::deque<LoadedModel> others;  // of an ensemble
  std::vector<EnsembleMember> members;
  for (size_t m = 1; m < a.models.size(); ++m) {
    const LoadedModel& other = others.emplace_back(load_beside(*files, usable(a.models[m]), loaded));
    refuse_own_inputs(a, output.written_path(), other.description.directory);
    members.push_back({other.model.get(), &other.description.vocabularies,
                       into_language(a.search.apply(other.description.search), other.description, a.target_language).source_prefix});
  }
  SearchOptions search = into_language(a.search.apply(loaded.description.search), loaded.description, a.target_language);
  if (a.sampling || (a.n_best > search.beam && !a.search.given("beam"))) search.beam = a.n_best;
  if (a.n_best > std::max<int64_t>(search.beam, std::llround(static_cast<double>(search.beam) * search.patience)))
    throw ConfigError(fmt::format("--n-best {} is more than the beam of {}; raise --beam, or --patience", a.n_best, search.beam));
  if (a.sampling && (search.repetition_penalty != 1 || search.prefix_bias > 0))
    throw ConfigError(
        "--sampling draws from the model's own probabilities; leave it out, or set --repetition-penalty 1 and --prefix-bias 0");
  search.n_best = a.n_best;
  search.alignment = a.document || a.lines.alignment;
  search.attention = a.lines.soft_alignment || a.lines.alignment_threshold > 0;

  const double start = steady_seconds();
  Translator translator(*loaded.model, loaded.description.vocabularies, search, a.batch_sentences, a.max_source_tokens, nullptr,
                        std::move(members));
  translator.set_memory({.processes = shards.processes()});
  if (a.sampling) translator.set_sampling(a.drawing);
  if (!a.glossary.empty()) translator.set_glossary(Glossary::load(a.glossary));
  translator.set_form(a.form);
  translator.set_weights(shares_of(a.weights));
  Languages languages = loaded.description.languages;
  if (!a.source_language.empty() && !a.leaves_other_languages()) languages.source = a.source_language;
  if (!a.target_language.empty()) languages.target = a.target_language;
  if (a.leaves_other_languages()) {
    const std::vector<std::string> sources = source_languages(languages);
    if (sources.empty())
      throw ConfigError(fmt::format("--source-language auto: {} does not say which language it translates from; leave the option out",
                                    loaded.description.directory));
    translator.set_source_languages(sources, languages.target);
  }
  const int64_t most_tokens = std::min(a.most_tokens_given ? a.max_source_tokens : kDocumentTokens, translator.most_text_tokens());
  if (!a.memory.empty()) translator.set_translation_memory(TranslationMemory::load(a.memory, languages.source, languages.target));
  DocumentTranslation documents(translator, loaded.description.vocabularies, languages, most_tokens);
  if (!a.keep.empty()) documents.set_own_placeholders(std::make_shared<OwnPlaceholders>(a.keep, "--keep"));
  size_t document = 0;  // of the inputs
  const size_t window = static_cast<size_t>(16 * a.batch_sentences);
  std::optional<LineQueue> queue;
  if (shards.first() && !a.document) queue.emplace(a.inputs, window);
  const uint64_t bytes = bytes_of(a.inputs);
  const bool shows = shards.first() && !a.quiet && bytes > 0 && !(a.output == "-" && isatty(STDOUT_FILENO));
  std::optional<TaskProgress> progress(std::in_place, "translate", shows ? standard_error_screen() : TaskScreen());
  size_t lines_under_way = 0;
  translator.set_watch({.stop = {}, .translated = [&](double share) {
                          if (!progress->due()) return;
                          if (a.document)
                            return progress->tell(
                                (static_cast<double>(document) + documents.share(share)) / static_cast<double>(a.inputs.size()), "");
                          progress->count(output.count() + std::llround(share * static_cast<double>(lines_under_way)),
                                          queue->expected_lines(bytes), "sentences");
                        }});
  std::optional<LineReader> prefixes;
  if (!a.prefix_file.empty()) prefixes.emplace(a.prefix_file);
  const auto take = [&] { return a.document ? std::vector<std::string>() : shards.lines([&] { return queue->take(window); }); };
  try {
    if (a.document)
      for (; document < a.inputs.size(); ++document) {
        std::string text = read_whole_text(a.inputs[document]);
        const std::string format = a.format == "auto" ? file_format(text, a.inputs[document]) : a.format;
        documents.translate(std::move(text), format, a.inputs[document],
                            [&](std::string_view piece, int64_t sentences) { output.write(piece, sentences); });
      }
    for (std::vector<std::string> lines = take(); !lines.empty(); lines = take()) {
      lines_under_way = lines.size();
      std::string wrong;
      std::vector<std::string> beginnings;
      const bool named = a.inputs.size() == 1 && a.inputs[0] != "-";
      if (a.tsv) beginnings = cut_beginnings(lines, named ? a.inputs[0] : "input", output.count() + 1, wrong);
      if (prefixes) beginnings = next_beginnings(*prefixes, lines, wrong);
      const bool texts = !a.all_lines && !a.form.source_pieces && !a.form.target_pieces;
      const std::vector<std::string> kept = texts ? take_lines_without_letters(lines, beginnings) : std::vector<std::string>(lines.size());
      auto translations = translator.translate(lines, beginnings);
      if (!shards.first()) continue;
      output.write(translations, lines, kept, translator, a);
      note.set(output.stopped(what, output.count()));
      if (!wrong.empty()) throw DataError(wrong);
    }
  } catch (const DataError& e) {
    throw DataError(e.what() + output.left("translations", output.count()));
  } catch (const ResourceError& e) {
    throw ResourceError(e.what() + output.left("translations", output.count()));
  }
  progress.reset();
  if (!shards.first()) return;
  {
    WholeWrite write;
    output.close();
    write.done(a.output == "-" ? "" : fmt::format("{} is complete", a.output));
  }
  if (std::string_view line; prefixes && prefixes->next(line))
    tell("warning: {} has more beginnings than the input has lines\n", a.prefix_file);
  tell("{}{}", translator.tag_warning(), translator.piece_warning());
  if (!a.memory.empty() && !a.quiet)
    tell("{} came from {}\n", counted(translator.from_memory(), a.document ? "sentence" : "line"), a.memory);
  if (a.leaves_other_languages() && !a.quiet)
    tell("{} in another language {} not translated\n", counted(translator.in_other_languages(), a.document ? "sentence" : "line"),
         translator.in_other_languages() == 1 ? "was" : "were");
  if (translator.missing_terms() > 0)
    tell("warning: {} of the glossary could not be placed; raise --beam\n", counted(translator.missing_terms(), "term"));
  if (translator.truncated() > 0) tell("{}", cut_warning(translator, a.max_source_tokens));
  if (translator.beginnings_cut() > 0)
    tell("warning: the given beginnings of {} were cut at {} tokens\n", counted(translator.beginnings_cut(), "translation"),
         translator.most_source_tokens());
  if (documents.cut() > 0)
    tell("note: {} were translated in parts of at most {} source tokens\n", counted(documents.cut(), "long sentence"),
         documents.most_tokens());
  if (a.quiet) return;
  const double seconds = steady_seconds() - start;
  tell("{} sentences, {} tokens in {:.2f} s: {:.0f} tokens/s, {:.1f} sentences/s ({} {}, {} rows, {} on {}, peak memory {} MiB)\n",
       output.count(), translator.output_tokens(), seconds, static_cast<double>(translator.output_tokens()) / seconds,
       static_cast<double>(output.count()) / seconds, a.sampling ? "samples" : "beam", search.beam, translator.work().rows,
       loaded.precision, machine_text(*loaded.backend, loaded.precision == "int8"), peak_memory().own >> 20);
}

}  // namespace

void add_translate(CLI::App& app) {
  auto a = std::make_shared<TranslateArguments>();
  CLI::App* const verb = add_translate_arguments(app, a);
  verb->callback([a] {
    check(*a);
    run_translate(*a);
  });
}

}  // namespace starling
