// Trains a vocabulary: passes a sample of the lines (vocabulary_sample.h), weighted by their counts, to SentencePiece's trainer. The
// trainer runs in a child process, because it terminates the process on text it cannot handle, and because its memory (about 25 bytes per
// byte of the sample) is then returned to the system.
#include <fcntl.h>
#include <fmt/ranges.h>
#include <sentencepiece_trainer.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/start_threads.h"
#include "base/task_progress.h"
#include "text/normalization.h"
#include "text/unicode.h"
#include "text/vocabulary.h"
#include "text/vocabulary_format.h"
#include "text/vocabulary_log.h"
#include "text/vocabulary_sample.h"

namespace starling {
namespace {

constexpr size_t kMaxLineBytes = 4192;            // SentencePiece skips longer lines (its max_sentence_length), so the sample does too
constexpr uint64_t kSampleStream = 0x766f636162;  // the sample's own seed
constexpr int64_t kSampleBytes = 40'000'000;      // of text: takes a few minutes at most on the texts that were measured
constexpr int64_t kMinSampleBytes = 1'000'000;
constexpr int64_t kMemoryFactor = 25;  // bytes that SentencePiece needs per byte of text

struct Bounds {
  int64_t lines, bytes;
  std::string reason;  // for the bound on bytes
};

// Memory is a hard bound. Time is a bound only if no number of lines was requested (docs/guides/data.md).
Bounds sample_bounds(const VocabularyOptions& options) {
  const UsableMemory memory = options.memory_bytes > 0 ? UsableMemory{options.memory_bytes, ""} : usable_memory();
  const int64_t fits = std::max(kMinSampleBytes, memory.bytes / 2 / kMemoryFactor);
  if (options.sample_lines > 0) return {options.sample_lines, fits, "a larger one does not fit into half of " + memory.text()};
  if (fits < kSampleBytes) return {INT64_MAX, fits, "a larger one does not fit into half of " + memory.text()};
  return {INT64_MAX, kSampleBytes, "a larger one would take long; vocab.sample-lines sets another number of lines"};
}

struct Sample {
  std::vector<SampledLine> lines;
  int64_t seen = 0;  // lines read
  bool partial = false;
};

Sample sample_lines(const LineSource& lines, const VocabularyOptions& options, const Bounds& bounds, const VocabularyWatch& watch,
                    TaskProgress& progress) {
  Sample sample;
  LineSampler sampler(options.seed ^ kSampleStream, bounds.lines, bounds.bytes);
  std::string_view line;
  std::string spaced;
  while (lines(line)) {
    if (++sample.seen % 4096 == 0 && progress.due())
      progress.tell(watch.fraction ? watch.fraction() : -1, fmt::format("{} lines read", sample.seen));
    if (line.size() > kMaxLineBytes || is_unicode_blank(line)) continue;
    if (line.find('\t') != std::string_view::npos) {  // separates line and count; every rule but identity makes it a space anyway
      spaced.assign(line);
      std::replace(spaced.begin(), spaced.end(), '\t', ' ');
      line = spaced;
    }
    sampler.add(line);
  }
  sample.partial = sampler.full();
  sample.lines = sampler.take();
  return sample;
}

// Passes the sample to the trainer line by line, with counts if there are any, and frees each line once the trainer has copied it.
class SampleIterator : public sentencepiece::SentenceIterator {
 public:
  SampleIterator(std::vector<SampledLine>& lines, bool counts) : lines_(lines), counts_(counts) { prepare(); }
  bool done() const override { return at_ >= lines_.size(); }
  void Next() override {
    std::string().swap(lines_[at_++].text);
    prepare();
  }
  const std::string& value() const override { return value_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  void prepare() {
    if (done()) return;
    value_ = lines_[at_].text;
    if (counts_) value_ += "\t" + std::to_string(lines_[at_].count);
  }

  std::vector<SampledLine>& lines_;
  bool counts_;
  size_t at_ = 0;
  std::string value_;
};

using TrainerArguments = std::unordered_map<std::string, std::string>;
void check_options(const VocabularyOptions& options) {
  if (options.type != "unigram" && options.type != "bpe")
    throw ConfigError(fmt::format("the vocabulary type is \"{}\"; choose unigram or bpe", options.type));
  if (options.size < 8 || options.size > 1'000'000)
    throw ConfigError(fmt::format("the vocabulary size is {}; choose 8 to 1000000 pieces, e.g. 8000", options.size));
  check_normalization(options.normalization);
  if (options.sample_lines < 0 || options.sample_lines > 1'000'000'000)
    throw ConfigError(fmt::format("the vocabulary's sample is {} lines; choose 1 to 1000000000, or 0 for what memory and time allow",
                                  options.sample_lines));
  if (!(options.character_coverage >= 0.98 && options.character_coverage <= 1))
    throw ConfigError(fmt::format("the character coverage is {}; choose 0.98 to 1, e.g. 0.9999", options.character_coverage));
  for (const std::string& text : options.whole)
    if (text.empty() || text.find_first_of(", \t\r\n") != std::string::npos)
      throw ConfigError(fmt::format("the user-defined symbol '{}' is not allowed; it must have neither commas nor spaces", text));
  if (options.threads < 1 || options.threads > 128)
    throw ConfigError(fmt::format("a vocabulary cannot be trained with {} threads; choose 1 to 128", options.threads));
}

TrainerArguments trainer_arguments(const VocabularyOptions& options, bool counts) {
  const bool spaces = options.normalization == kSpaces;
  TrainerArguments arguments{
      {"model_type", options.type},
      {"input_format", counts ? "tsv" : "text"},
      {spaces ? "normalization_rule_tsv" : "normalization_rule_name", spaces ? kSpaceRulesPath : options.normalization},
      {"vocab_size", std::to_string(options.size)},
      {"hard_vocab_limit", "false"},  // allows fewer pieces if the text does not yield that many
      {"character_coverage", fmt::format("{}", options.character_coverage)},
      {"num_threads", std::to_string(options.threads)},
      {"max_sentence_length", std::to_string(kMaxLineBytes)},
      {"shuffle_input_sentence", "false"},
      {"minloglevel", "0"},
      {"unk_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"pad_id", "-1"}};
  if (options.byte_fallback) arguments.emplace("byte_fallback", "true");
  if (options.split_digits) arguments.emplace("split_digits", "true");
  if (!options.whole.empty()) arguments.emplace("user_defined_symbols", fmt::format("{}", fmt::join(options.whole, ",")));
  if (!options.symbols.empty()) arguments.emplace("control_symbols", fmt::format("{}", fmt::join(options.symbols, ",")));
  return arguments;
}

// The trainer reports the size it needs as "... smaller than required_chars. 30 vs 83. ...".
[[noreturn]] void training_failed(const VocabularyOptions& options, const std::string& message) {
  long size = 0, needed = 0;
  const size_t at = message.find("required_chars. ");
  if (at != std::string::npos && std::sscanf(message.c_str() + at, "required_chars. %ld vs %ld", &size, &needed) == 2)
    throw ConfigError(
        fmt::format("a vocabulary of {} pieces cannot hold the text's characters, which take {}; choose a size of at least {}, "
                    "or lower the character coverage of {}",
                    options.size, needed, needed + 1, options.character_coverage));
  throw DataError(fmt::format("SentencePiece could not train a vocabulary ({}); check that the text is ordinary sentences", message));
}

// An in-memory file that parent and child share.
class SharedFile {
 public:
  SharedFile() : fd_(::memfd_create("starling-vocabulary", MFD_CLOEXEC)) {
    if (fd_ < 0) throw IoError(fmt::format("cannot create an in-memory file: {}; free some memory", std::strerror(errno)));
  }
  ~SharedFile() { ::close(fd_); }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  int fd() const { return fd_; }
  bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(fd_, bytes.data(), bytes.size());
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }
  // Returns the content from byte `begin` on. Gets the size without moving the file position, at which the child writes.
  std::string content(size_t begin = 0) const {
    struct stat info {};
    if (::fstat(fd_, &info) != 0 || static_cast<size_t>(info.st_size) <= begin) return "";
    std::string bytes(static_cast<size_t>(info.st_size) - begin, '\0');
    size_t have = 0;
    for (ssize_t count;
         have < bytes.size() && (count = ::pread(fd_, bytes.data() + have, bytes.size() - have, static_cast<off_t>(begin + have))) > 0;)
      have += static_cast<size_t>(count);
    bytes.resize(have);
    return bytes;
  }

 private:
  int fd_;
};

constexpr int kTrained = 0, kRefused = 3;  // the child's exit codes: the result is a model, or a message

// Runs in the child: trains, writes the result and never returns. The trainer's output goes to `printed`; an interrupt ends the child at
// once.
[[noreturn]] void train_and_exit(std::vector<SampledLine>& lines, const VocabularyOptions& options, SharedFile& result,
                                 const SharedFile& printed, const SharedFile& rules) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
  ::dup2(printed.fd(), STDERR_FILENO);
  ::dup2(rules.fd(), kSpaceRulesFd);
  int code = kRefused;
  try {
    const bool counts = std::any_of(lines.begin(), lines.end(), [](const SampledLine& line) { return line.count > 1; });
    SampleIterator iterator(lines, counts);
    std::string model;
    const auto status = sentencepiece::SentencePieceTrainer::Train(trainer_arguments(options, counts), &iterator, &model);
    if (result.write(status.ok() ? model : status.ToString()) && status.ok()) code = kTrained;
  } catch (const std::exception& error) {
    result.write(error.what());
  }
  ::_exit(code);
}

// Waits for the child, calling `look` now and then. Returns what went wrong, or nullopt if the child ended with an exit code.
std::optional<std::string> wait_for(pid_t child, int& code, const std::function<void()>& look) {
  int status = 0;
  for (int pause_ms = 1;; pause_ms = std::min(2 * pause_ms, 100)) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) return fmt::format("waiting for it failed: {}", std::strerror(errno));
    look();
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
  }
  code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (WIFSIGNALED(status) && WTERMSIG(status) != SIGABRT)
    return fmt::format("stopped by signal {}, {}", WTERMSIG(status),
                       WTERMSIG(status) == SIGKILL ? "perhaps for lack of memory" : strsignal(WTERMSIG(status)));
  return std::nullopt;
}

// Trains in a child process. The lines are freed here as soon as the child has its copy.
std::string train_model(std::vector<SampledLine> lines, const VocabularyOptions& options, TaskProgress& progress) {
  SharedFile result, printed, rules;
  if (!rules.write(space_rules())) throw IoError("cannot write to an in-memory file; free some memory");
  const pid_t child = ::fork();
  if (child < 0) throw IoError(fmt::format("cannot start a process to train the vocabulary: {}; free some memory", std::strerror(errno)));
  if (child == 0) train_and_exit(lines, options, result, printed, rules);
  std::vector<SampledLine>().swap(lines);
  TrainerLog log(options.size);
  size_t read = 0;
  const auto look = [&] {
    const std::string more = printed.content(read);
    read += more.size();
    const bool counted = log.fraction() >= 0;
    log.add(more);
    if (!counted && log.fraction() >= 0) progress.estimate_from(log.fraction());
    if (progress.due()) progress.tell(log.fraction(), log.stage());
  };
  int code = -1;
  if (const auto stopped = wait_for(child, code, look)) training_failed(options, *stopped);
  if (code == kTrained) return result.content();
  look();
  training_failed(options, code == kRefused ? result.content() : log.errors());
}

}  // namespace

VocabularyReport train_vocabulary(const LineSource& lines, const VocabularyOptions& options, const std::string& path,
                                  const VocabularyWatch& watch) {
  check_options(options);
  require_threads(options.threads);  // otherwise SentencePiece would blame the text, after reading all of it
  TaskProgress progress("vocabulary", watch.say, watch.now ? watch.now : steady_seconds);
  const Bounds bounds = sample_bounds(options);
  Sample sample = sample_lines(lines, options, bounds, watch, progress);
  if (sample.lines.empty())
    throw DataError(fmt::format("none of the {} lines read to train a vocabulary is usable; is the training text empty?", sample.seen));
  VocabularyReport report{sample.seen, static_cast<int64_t>(sample.lines.size())};
  for (const SampledLine& line : sample.lines) {
    report.stands_for += line.count;
    report.sampled_bytes += static_cast<int64_t>(line.text.size());
  }
  if (sample.partial && watch.say && report.sampled < bounds.lines)
    watch.say(fmt::format("vocabulary: a sample of {} different lines, {} MB; {}", report.sampled, report.sampled_bytes / 1'000'000,
                          bounds.reason));
  std::string model = vocabulary_format::sealed(train_model(std::move(sample.lines), options, progress), options.size);
  report.size = Vocabulary::from_bytes(model, path).size();
  if (report.size <= 3) training_failed(options, "it found no pieces");  // <unk>, <s>, </s> alone
  real_file_system()->replace_file(path, model);
  return report;
}

}  // namespace starling
