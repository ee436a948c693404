// The verb `starling translate`: translates lines or documents in order. A separate thread reads lines, so that a pipe is answered as soon
// as a line arrives while a file is translated in large batches.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>

#include "base/counted.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/resource_error.h"
#include "base/start_threads.h"
#include "base/stop_note.h"
#include "base/task_progress.h"
#include "cli/search_arguments.h"
#include "cli/verbs.h"
#include "comm/shard_communicator.h"
#include "comm/threads.h"
#include "comm/world.h"
#include "data/line_reader.h"
#include "data/whole_text.h"
#include "decode/document_parts.h"
#include "decode/framing.h"
#include "decode/translator.h"
#include "interop/usable_model.h"
#include "storage/outputs.h"
#include "storage/result_file.h"

namespace starling {
namespace {

struct TranslateArguments {
  std::string model, output = "-";
  DeviceChoice compute;
  std::vector<std::string> inputs{"-"};
  SearchArguments search;
  int64_t n_best = 1, batch_sentences = 64, max_source_tokens = 1000;
  int64_t shards = 1;
  bool quiet = false, document = false, most_tokens_given = false;
  std::string format = "text", source_language, target_language;
};

constexpr int64_t kDocumentTokens = 200;  // most tokens of a part; models are seldom trained on longer ones

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

// Passes lines of several files through a bounded queue, filled by a thread. A thread blocked on a terminal cannot be woken, so it is left
// behind if translating fails; what it uses is shared with it and outlives the queue.
class LineQueue {
 public:
  LineQueue(std::vector<std::string> paths, size_t capacity) : shared_(std::make_shared<Shared>()) {
    start_thread("reading lines", [shared = shared_, paths = std::move(paths), capacity] { shared->read(paths, capacity); }).detach();
  }
  ~LineQueue() {
    const std::lock_guard lock(shared_->mutex);
    shared_->abandoned = true;
    shared_->changed.notify_all();
  }

  // Returns between one and `most` lines, or none at the end. It waits a moment for more, since a batch costs less than its lines one by
  // one. For files it waits until there are enough, so that batches do not depend on the reading speed. Rethrows the reader's error after
  // the lines before it are taken.
  std::vector<std::string> take(size_t most) {
    Shared& s = *shared_;
    std::unique_lock lock(s.mutex);
    s.changed.wait(lock, [&] { return !s.lines.empty() || s.done; });
    const auto enough = [&] { return s.lines.size() >= most || s.done; };
    if (s.file)
      s.changed.wait(lock, [&] { return enough() || !s.file; });
    else
      s.changed.wait_for(lock, std::chrono::milliseconds(3), enough);
    std::vector<std::string> taken;
    while (!s.lines.empty() && taken.size() < most) {
      taken.push_back(std::move(s.lines.front()));
      s.lines.pop_front();
    }
    if (taken.empty() && s.error) std::rethrow_exception(s.error);
    s.changed.notify_all();
    return taken;
  }

  // Estimates the number of lines in files of `bytes` bytes; 0: not known yet.
  int64_t expected_lines(uint64_t bytes) const {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->done) return shared_->count;
    const uint64_t read = std::min(shared_->text_bytes, shared_->file_bytes);
    if (read == 0 || read >= bytes) return 0;
    return std::llround(static_cast<double>(shared_->count) * static_cast<double>(bytes) / static_cast<double>(read));
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::string> lines;
    int64_t count = 0;                        // lines so far
    uint64_t text_bytes = 0, file_bytes = 0;  // bytes of these lines, and bytes read, which run ahead and are compressed in archives
    bool done = false, abandoned = false;
    bool file = false;  // lines currently come from a file, not from a pipe or a terminal
    std::exception_ptr error;

    void read(const std::vector<std::string>& paths, size_t capacity) {
      std::exception_ptr failure;
      uint64_t before = 0;  // bytes of files already read
      try {
        for (const std::string& path : paths) {
          {
            std::error_code none;
            const std::lock_guard lock(mutex);
            file = std::filesystem::is_regular_file(path == "-" ? "/dev/stdin" : path, none);
            changed.notify_all();
          }
          LineReader reader(path);
          for (std::string_view line; reader.next(line);) {
            std::unique_lock lock(mutex);
            changed.wait(lock, [&] { return lines.size() < capacity || abandoned; });
            if (abandoned) return;
            lines.emplace_back(line);
            ++count;
            text_bytes += line.size() + 1;
            file_bytes = before + reader.bytes_read();
            changed.notify_all();
          }
          before += reader.bytes_read();
        }
      } catch (...) {
        failure = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      error = failure;
      done = true;
      changed.notify_all();
    }
  };
  std::shared_ptr<Shared> shared_;
};

// Writes translations as lines of text or as n-best lists.
class Output : public ResultFile {
 public:
  using ResultFile::ResultFile;
  void write(const std::vector<std::vector<Translation>>& translations, int64_t n_best) {
    std::ostream& out = stream();
    for (const auto& list : translations) {
      if (n_best == 1) {
        out << list.front().text << '\n';
      } else {
        for (const Translation& t : list)
          out << fmt::format("{} ||| {} ||| {:.6f} ||| {:.6f}\n", count_, t.text, t.log_probability, t.score);
      }
      ++count_;
    }
    flush(count_);
  }
  void write(const std::string& document, int64_t sentences) {
    stream() << document;
    count_ += sentences;
    flush(count_);
  }
  int64_t count() const { return count_; }

 private:
  int64_t count_ = 0;
};

// Refuses to overwrite an input. Called before anything is loaded, and again when the model's directory is known.
void refuse_own_inputs(const TranslateArguments& a, const std::string& written, const std::string& model) {
  std::vector<NamedPath> inputs;
  for (const std::string& input : a.inputs) inputs.push_back({input == "-" ? "standard input" : "--input", input});
  if (!model.empty()) inputs.push_back({"--model", model});
  for (const std::string& path : {a.output, written}) refuse_own_input({path == "-" ? "standard output" : "--output", path}, inputs);
  refuse_run_files({a.output == "-" ? "standard output" : "--output", a.output});
}

// Translates each input as one document in which everything but the sentences stays unchanged. Sentences never span lines, so plain text is
// processed in pieces; HTML is processed as a whole.
class DocumentTranslation {
 public:
  DocumentTranslation(const TranslateArguments& a, const Vocabularies& vocabularies, const std::string& language, Translator& translator,
                      Output& output)
      : inputs_(a.inputs),
        format_(a.format == "html" ? DocumentFormat::html : DocumentFormat::text),
        most_tokens_(a.most_tokens_given ? a.max_source_tokens : kDocumentTokens),
        vocabularies_(vocabularies),
        language_(language),
        translator_(translator),
        output_(output) {}

  // Translates the input with this number.
  void translate(size_t number) {
    const std::string& path = inputs_[number];
    const auto at = [&](size_t bytes, size_t of) {
      return (static_cast<double>(number) + static_cast<double>(bytes) / static_cast<double>(of)) / static_cast<double>(inputs_.size());
    };
    constexpr size_t kPiece = size_t{1} << 18;
    const std::string text = read_whole_text(path);
    for (size_t begin = 0; begin < text.size();) {
      const size_t line =
          format_ == DocumentFormat::html || text.size() - begin <= kPiece ? std::string::npos : text.find('\n', begin + kPiece);
      const size_t end = line == std::string::npos ? text.size() : line + 1;
      begun_ = at(begin, text.size());
      ends_ = at(end, text.size());
      translate_piece(text.substr(begin, end - begin));
      begin = end;
    }
  }
  // Returns the translated fraction of all inputs, 0 to 1, given that of the current piece.
  double share(double of_piece) const { return begun_ + of_piece * (ends_ - begun_); }
  int64_t cut() const { return cut_; }
  int64_t most_tokens() const { return most_tokens_; }

 private:
  void translate_piece(std::string text) {
    const DocumentParts document(Document(std::move(text), format_, language_), vocabularies_.source(), most_tokens_);
    cut_ += document.cut();
    std::vector<PartTranslation> parts;
    for (auto& list : translator_.translate(document.parts()))
      parts.push_back({std::move(list.front().text), std::move(list.front().hypothesis)});
    output_.write(document.assemble(parts, vocabularies_.source(), vocabularies_.target()), static_cast<int64_t>(parts.size()));
  }

  const std::vector<std::string>& inputs_;
  double begun_ = 0, ends_ = 0;  // where the current piece begins and ends, as fractions of all inputs
  DocumentFormat format_;
  int64_t most_tokens_, cut_ = 0;
  const Vocabularies& vocabularies_;
  const std::string language_;
  Translator& translator_;
  Output& output_;
};

void check_document(const TranslateArguments& a) {
  if (!a.document && a.format != "text") throw ConfigError(fmt::format("--format {} is for documents; add --document", a.format));
  if (!a.document && !a.source_language.empty())
    throw ConfigError("--source-language determines where the sentences of a document end; add --document, or leave it out");
  check({a.source_language, ""}, "translate");
  if (a.document && a.n_best > 1)
    throw ConfigError("--n-best gives lists of sentences, and --document one document; leave out one of the two");
  if (a.document && a.shards > 1) throw ConfigError("--document translates with one rank; leave out --parallel.tensor");
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

void run_translate(const TranslateArguments& a) {
  check_document(a);
  const auto files = real_file_system();
  Shards shards(a.shards);
  Output output(shards.first() ? a.output : "-");
  const char* const what = "translations";
  StopNote note(shards.first() ? output.stopped(what, 0) : "");
  refuse_own_inputs(a, output.written_path(), "");
  DeviceChoice choice = a.compute;
  choice.threads = shards.threads(choice.threads);
  if (const std::string why = why_no_card(choice); shards.first() && !a.quiet && !why.empty()) tell("{}\n", why);
  const std::string model = usable_model(*files, a.model, [&](const std::string& line) {
    if (shards.first() && !a.quiet) tell("{}\n", line);
  });
  ModelDescription description = shards.describe(*files, model, choice);
  const LoadedModel loaded = load_model(*files, std::move(description), choice, shards.group());
  refuse_own_inputs(a, output.written_path(), loaded.description.directory);
  SearchOptions search = into_language(a.search.apply(loaded.description.search), loaded.description.languages, a.target_language);
  if (a.n_best > search.beam && !a.search.given("beam")) search.beam = a.n_best;
  if (a.n_best > search.beam)
    throw ConfigError(fmt::format("--n-best {} is more than the beam of {}; raise --beam", a.n_best, search.beam));
  search.n_best = a.n_best;
  search.alignment = a.document;

  const double start = steady_seconds();
  Translator translator(*loaded.model, loaded.description.vocabularies, search, a.batch_sentences, a.max_source_tokens);
  translator.set_memory({.processes = shards.processes()});
  const std::string& language = a.source_language.empty() ? loaded.description.languages.source : a.source_language;
  DocumentTranslation documents(a, loaded.description.vocabularies, language, translator, output);
  const size_t window = static_cast<size_t>(16 * a.batch_sentences);
  std::optional<LineQueue> queue;
  if (shards.first() && !a.document) queue.emplace(a.inputs, window);
  const uint64_t bytes = bytes_of(a.inputs);
  const bool shows = shards.first() && !a.quiet && bytes > 0 && !(a.output == "-" && isatty(STDOUT_FILENO));
  std::optional<TaskProgress> progress(std::in_place, "translate", shows ? standard_error_screen() : TaskScreen());
  size_t lines_under_way = 0;
  translator.set_watch({.stop = {}, .translated = [&](double share) {
                          if (!progress->due()) return;
                          if (a.document) return progress->tell(documents.share(share), "");
                          progress->count(output.count() + std::llround(share * static_cast<double>(lines_under_way)),
                                          queue->expected_lines(bytes), "sentences");
                        }});
  const auto take = [&] { return a.document ? std::vector<std::string>() : shards.lines([&] { return queue->take(window); }); };
  try {
    if (a.document)
      for (size_t i = 0; i < a.inputs.size(); ++i) documents.translate(i);
    for (std::vector<std::string> lines = take(); !lines.empty(); lines = take()) {
      lines_under_way = lines.size();
      const auto translations = translator.translate(lines);
      if (!shards.first()) continue;
      output.write(translations, a.n_best);
      note.set(output.stopped(what, output.count()));
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
  if (translator.truncated() > 0)
    tell("warning: {} sentences were cut at {} source tokens; raise --max-source-tokens\n", translator.truncated(), a.max_source_tokens);
  if (documents.cut() > 0)
    tell("note: {} were translated in parts of at most {} source tokens\n", counted(documents.cut(), "long sentence"),
         documents.most_tokens());
  if (a.quiet) return;
  const double seconds = steady_seconds() - start;
  tell("{} sentences, {} tokens in {:.2f} s: {:.0f} tokens/s, {:.1f} sentences/s (beam {}, {} rows, {} on {}, peak memory {} MiB)\n",
       output.count(), translator.output_tokens(), seconds, static_cast<double>(translator.output_tokens()) / seconds,
       static_cast<double>(output.count()) / seconds, search.beam, translator.work().rows, loaded.precision,
       machine_text(*loaded.backend, loaded.precision == "int8"), peak_memory().own >> 20);
}

}  // namespace

void add_translate(CLI::App& app) {
  auto* sub = app.add_subcommand("translate", "translate raw text with a trained model");
  auto a = std::make_shared<TranslateArguments>();
  sub->add_option("-m,--model", a->model, "run directory, checkpoint or model directory")->required();
  sub->add_option("-i,--input", a->inputs, "text to translate, one sentence a line (plain, .gz, .zst); - = standard input")
      ->capture_default_str();
  sub->add_option("-o,--output", a->output, "where translations go; - = standard output; a file is FILE.partial until it is complete")
      ->capture_default_str();
  a->search.add_to(*sub);
  sub->add_option("--n-best", a->n_best,
                  "translations a sentence (fewer where pruned); above 1 lines are: number ||| text ||| log-probability ||| score")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  CLI::Option* most_tokens =
      sub->add_option("--max-source-tokens", a->max_source_tokens,
                      "longer sentences are cut, tokens; with --document they are translated in parts, at 200 unless "
                      "this is given")
          ->check(CLI::Range(1, 8192))
          ->capture_default_str();
  sub->add_flag("--document", a->document,
                "each input is a document: its sentences are found and translated, everything else stays (docs/guides/documents.md)");
  sub->add_option("--format", a->format, "of documents: text or html, whose tags are kept and moved with their words")
      ->check(CLI::IsMember({"text", "html"}))
      ->capture_default_str();
  add_target_language_option(*sub, a->target_language);
  sub->add_option("--source-language", a->source_language,
                  "of documents: code of their language, such as en or pt-BR; default: the model's");
  sub->add_option("--batch-size", a->batch_sentences, "sentences translated at once, at the most")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  add_device_options(*sub, a->compute);
  sub->add_option("--parallel.tensor", a->shards,
                  "shards that each layer and vocabulary is cut into, on as many ranks of mpirun: for a model that does not fit one")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  sub->add_flag("--quiet", a->quiet, "no progress and no line about speed on standard error");
  sub->callback([a, most_tokens] {
    a->most_tokens_given = most_tokens->count() > 0;
    run_translate(*a);
  });
}

}  // namespace starling
