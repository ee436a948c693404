// Training a vocabulary: a seeded reservoir sample (Vitter's algorithm R) of the lines, given to SentencePiece's trainer.
// It runs in a child process, because it ends the process on text it does not like, and because its memory (some twenty bytes a
// character) is then given back to the system.
#include <fcntl.h>
#include <sentencepiece_trainer.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "text/unicode.h"
#include "text/vocabulary.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

constexpr size_t kMaxLineBytes = 4192;            // SentencePiece leaves out longer lines (its max_sentence_length), so the sample does too
constexpr uint64_t kSampleStream = 0x766f636162;  // the sample's own random stream

struct Sample {
  std::vector<std::string> lines;
  int64_t seen = 0;  // lines read
};

bool is_blank(std::string_view line) {
  while (!line.empty()) {
    const DecodedCodePoint next = decode_utf8_at(line);
    if (next.length == 0 || !is_unicode_space(next.value)) return false;
    line.remove_prefix(static_cast<size_t>(next.length));
  }
  return true;
}

Sample sample_lines(const LineSource& lines, const VocabularyOptions& options) {
  Sample sample;
  Random random(options.seed, kSampleStream);
  const auto capacity = static_cast<uint64_t>(options.sample_lines);
  uint64_t usable = 0;
  std::string_view line;
  while (lines(line)) {
    ++sample.seen;
    if (line.size() > kMaxLineBytes || is_blank(line)) continue;
    ++usable;
    if (sample.lines.size() < capacity) {
      sample.lines.emplace_back(line);
    } else if (const uint64_t at = random.below(usable); at < capacity) {
      sample.lines[at].assign(line);
    }
  }
  return sample;
}

// Hands the sample over line by line and frees what the trainer has copied.
class SampleIterator : public sentencepiece::SentenceIterator {
 public:
  explicit SampleIterator(std::vector<std::string>& lines) : lines_(lines) {}
  bool done() const override { return at_ >= lines_.size(); }
  void Next() override { std::string().swap(lines_[at_++]); }
  const std::string& value() const override { return lines_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::vector<std::string>& lines_;
  size_t at_ = 0;
};

using TrainerArguments = std::unordered_map<std::string, std::string>;
void check_options(const VocabularyOptions& options) {
  if (options.type != "unigram" && options.type != "bpe")
    throw ConfigError(fmt::format("the vocabulary type is \"{}\"; choose unigram or bpe", options.type));
  if (options.size < 8 || options.size > 1'000'000)
    throw ConfigError(fmt::format("the vocabulary size is {}; choose 8 to 1000000 pieces, e.g. 8000", options.size));
  if (options.sample_lines < 1 || options.sample_lines > 100'000'000)
    throw ConfigError(fmt::format("the vocabulary's sample is {} lines; choose 1 to 100000000, e.g. 2000000", options.sample_lines));
  if (!(options.character_coverage >= 0.98 && options.character_coverage <= 1))
    throw ConfigError(fmt::format("the character coverage is {}; choose 0.98 to 1, e.g. 0.9999", options.character_coverage));
  if (options.threads < 1 || options.threads > 128)
    throw ConfigError(fmt::format("the vocabulary's threads are {}; choose 1 to 128", options.threads));
}

TrainerArguments trainer_arguments(const VocabularyOptions& options) {
  return {{"model_type", options.type},
          {"vocab_size", std::to_string(options.size)},
          {"hard_vocab_limit", "false"},  // fewer pieces if the text does not hold so many
          {"character_coverage", fmt::format("{}", options.character_coverage)},
          {"num_threads", std::to_string(options.threads)},
          {"max_sentence_length", std::to_string(kMaxLineBytes)},
          {"shuffle_input_sentence", "false"},
          {"minloglevel", "2"},
          {"unk_id", "0"},
          {"bos_id", "1"},
          {"eos_id", "2"},
          {"pad_id", "-1"}};
}

// The trainer tells what it needs as "... smaller than required_chars. 30 vs 83. ...".
[[noreturn]] void training_failed(const VocabularyOptions& options, const std::string& message) {
  long size = 0, needed = 0;
  const size_t at = message.find("required_chars. ");
  if (at != std::string::npos && std::sscanf(message.c_str() + at, "required_chars. %ld vs %ld", &size, &needed) == 2)
    throw ConfigError(
        fmt::format("a vocabulary of {} pieces cannot hold the text's characters, which take {}; ask for a size of at least {}, "
                    "or lower the character coverage of {}",
                    options.size, needed, needed + 1, options.character_coverage));
  throw DataError(fmt::format("SentencePiece could not train a vocabulary ({}); check that the text is ordinary sentences", message));
}

// A file in memory that parent and child share.
class SharedFile {
 public:
  SharedFile() : fd_(::memfd_create("starling-vocabulary", MFD_CLOEXEC)) {
    if (fd_ < 0) throw IoError(fmt::format("no memory for a shared file: {}", std::strerror(errno)));
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
  std::string content() const {
    std::string bytes(static_cast<size_t>(std::max<off_t>(0, ::lseek(fd_, 0, SEEK_END))), '\0');
    size_t have = 0;
    for (ssize_t count;
         have < bytes.size() && (count = ::pread(fd_, bytes.data() + have, bytes.size() - have, static_cast<off_t>(have))) > 0;)
      have += static_cast<size_t>(count);
    bytes.resize(have);
    return bytes;
  }

 private:
  int fd_;
};

constexpr int kTrained = 0, kRefused = 3;  // the child's exit codes: the result is a model, or a message

// The child: trains and leaves the result; never returns. What the trainer prints goes to `printed`, an interrupt ends it at once.
[[noreturn]] void train_and_exit(std::vector<std::string>& lines, const TrainerArguments& arguments, SharedFile& result,
                                 const SharedFile& printed) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGINT, SIGTERM}) ::signal(signal, SIG_DFL);
  ::dup2(printed.fd(), STDERR_FILENO);
  int code = kRefused;
  try {
    SampleIterator iterator(lines);
    std::string model;
    const auto status = sentencepiece::SentencePieceTrainer::Train(arguments, &iterator, &model);
    if (result.write(status.ok() ? model : status.ToString()) && status.ok()) code = kTrained;
  } catch (const std::exception& error) {
    result.write(error.what());
  }
  ::_exit(code);
}

// What became of the child, or nothing if it ended by exit code.
std::optional<std::string> wait_for(pid_t child, int& code) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return fmt::format("waiting for it failed: {}", std::strerror(errno));
  code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (WIFSIGNALED(status) && WTERMSIG(status) != SIGABRT)
    return fmt::format("stopped by signal {}, {}", WTERMSIG(status),
                       WTERMSIG(status) == SIGKILL ? "perhaps for want of memory" : strsignal(WTERMSIG(status)));
  return std::nullopt;
}

std::string last_lines(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.size() > 400) text.erase(0, text.size() - 400);
  return text.empty() ? "it gave no reason" : text;
}

std::string train_model(std::vector<std::string>& lines, const VocabularyOptions& options) {
  const TrainerArguments arguments = trainer_arguments(options);
  SharedFile result, printed;
  const pid_t child = ::fork();
  if (child < 0) throw IoError(fmt::format("no process to train the vocabulary in: {}; free some memory", std::strerror(errno)));
  if (child == 0) train_and_exit(lines, arguments, result, printed);
  int code = -1;
  if (const auto stopped = wait_for(child, code)) training_failed(options, *stopped);
  if (code == kTrained) return result.content();
  training_failed(options, last_lines(code == kRefused ? result.content() : printed.content()));
}

}  // namespace

VocabularyReport train_vocabulary(const LineSource& lines, const VocabularyOptions& options, const std::string& path) {
  check_options(options);
  Sample sample = sample_lines(lines, options);
  if (sample.lines.empty())
    throw DataError(fmt::format("no usable line among the {} read to train a vocabulary; is the training text empty?", sample.seen));
  VocabularyReport report{sample.seen, static_cast<int64_t>(sample.lines.size()), 0};
  std::string model = vocabulary_format::sealed(train_model(sample.lines, options), options.size);
  report.size = Vocabulary::from_bytes(model, path).size();
  if (report.size <= 3) training_failed(options, "it found no pieces");  // <unk>, <s>, </s> alone
  real_file_system()->replace_file(path, model);
  return report;
}

}  // namespace starling
