// A separate thread reads lines (data/line_queue.h), so that a pipe is answered as soon as a line arrives while a file is translated in
// large batches.
#include "translate/translate_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <optional>

#include "base/resource_error.h"
#include "base/stop_note.h"
#include "data/line_queue.h"
#include "data/whole_text.h"
#include "decode/document_translation.h"
#include "formats/file_format.h"
#include "storage/result_file.h"
#include "translate/beginnings.h"
#include "translate/line_translation.h"
#include "translate/models.h"
#include "translate/remarks.h"

namespace starling {
namespace {

constexpr const char* kTranslations = "translations";

// Every file that is read; `models` are directories.
std::vector<NamedPath> inputs_of(const TranslateOptions& o, std::vector<NamedPath> models) {
  std::vector<NamedPath> inputs;
  for (const std::string& input : o.inputs) inputs.push_back({input == "-" ? "standard input" : "--input", input});
  inputs.insert(inputs.end(), models.begin(), models.end());
  inputs.insert(inputs.end(), {{"--prefix-file", o.prefix_file}, {"--glossary", o.glossary}, {"--memory", o.memory}});
  return inputs;
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

class FileTranslation {
 public:
  FileTranslation(const TranslateOptions& o, const TranslateSurroundings& s, ShardRanks& shards, const TranslationModels& models,
                  ResultFile& output)
      : o_(o),
        s_(s),
        shards_(shards),
        models_(models),
        output_(output),
        translator_(models.translator(o, shards.processes())),
        documents_(translator_, models.first().description.vocabularies, models.languages(),
                   std::min(o.most_tokens_given ? o.max_source_tokens : kDocumentTokens, translator_.most_text_tokens())),
        beginnings_(o),
        progress_(std::in_place, "translate", shards.first() && !o.quiet && bytes_ > 0 ? s.screen : TaskScreen()) {
    if (!o.keep.empty()) documents_.set_own_placeholders(std::make_shared<OwnPlaceholders>(o.keep, "--keep"));
    format_ = o.lines;
    format_.list = o.n_best > 1;
    if (o.confidence) format_.confidence = &models.first().confidence.require();
  }

  void run() {
    try {
      o_.document ? translate_documents() : translate_lines();
    } catch (const DataError& e) {
      throw DataError(e.what() + output_.left(kTranslations, count_));
    } catch (const ResourceError& e) {
      throw ResourceError(e.what() + output_.left(kTranslations, count_));
    }
    progress_.reset();
    if (!shards_.first()) return;
    close();
    s_.tell(beginnings_.warning() + remarks(o_, translator_, documents_));
    if (!o_.quiet) s_.tell(speed_line(o_, models_, translator_, count_, steady_seconds() - start_));
  }

 private:
  void translate_documents() {
    size_t at = 0;  // of the inputs
    watch([&](double share) {
      progress_->tell((static_cast<double>(at) + documents_.share(share)) / static_cast<double>(o_.inputs.size()), "");
    });
    for (; at < o_.inputs.size(); ++at) {
      std::string text = read_whole_text(o_.inputs[at]);
      const std::string format = o_.format == "auto" ? file_format(text, o_.inputs[at]) : o_.format;
      documents_.translate(std::move(text), format, o_.inputs[at],
                           [&](std::string_view piece, int64_t sentences) { write(piece, sentences); });
    }
  }

  void translate_lines() {
    const auto most = static_cast<size_t>(16 * o_.batch_sentences);
    std::optional<LineQueue> queue;
    if (shards_.first()) queue.emplace(o_.inputs, most);
    const auto take = [&] { return shards_.lines([&] { return queue->take(most); }); };
    size_t under_way = 0;
    watch([&](double share) {
      progress_->count(count_ + std::llround(share * static_cast<double>(under_way)), queue->expected_lines(bytes_), "sentences");
    });
    for (std::vector<std::string> lines = take(); !lines.empty(); lines = take()) {
      under_way = lines.size();
      translate(std::move(lines));
    }
  }

  void translate(std::vector<std::string> lines) {
    const std::vector<std::string> beginnings = beginnings_.take(lines);
    const bool all = o_.all_lines || o_.form.source_pieces || o_.form.target_pieces;
    const auto translations = translate_texts(translator_, lines, beginnings, all);
    if (!shards_.first()) return;
    std::string text;
    for (size_t i = 0; i < lines.size(); ++i)
      text += translation_lines(translations[i], count_ + static_cast<int64_t>(i), lines[i], translator_, format_);
    write(text, std::ssize(lines));
    s_.on_stop(output_.stopped(kTranslations, count_));
    if (!beginnings_.wrong().empty()) throw DataError(beginnings_.wrong());
  }

  void write(std::string_view text, int64_t sentences) {
    output_.stream() << text;
    count_ += sentences;
    output_.flush(count_);
  }

  void close() {
    WholeWrite write;
    output_.close();
    write.done(o_.output == "-" ? "" : fmt::format("{} is complete", o_.output));
  }

  template <class Show>
  void watch(Show show) {
    translator_.set_watch({.stop = {}, .translated = [this, show](double share) {
                             if (progress_->due()) show(share);
                           }});
  }

  const TranslateOptions& o_;
  const TranslateSurroundings& s_;
  ShardRanks& shards_;
  const TranslationModels& models_;
  ResultFile& output_;
  const double start_ = steady_seconds();
  const uint64_t bytes_ = bytes_of(o_.inputs);
  Translator translator_;
  DocumentTranslation documents_;
  Beginnings beginnings_;
  LineFormat format_;
  std::optional<TaskProgress> progress_;
  int64_t count_ = 0;  // sentences written
};

}  // namespace

void translate_files(FileSystem& files, const TranslateOptions& o, const TranslateSurroundings& s) {
  check(o);
  ShardRanks shards(o.shards, s.join);
  const Say say = [&](const std::string& line) {
    if (shards.first() && !o.quiet) s.tell(line + "\n");
  };
  ResultFile output(shards.first() ? o.output : "-", s.output);
  if (shards.first()) s.on_stop(output.stopped(kTranslations, 0));
  output.refuse(inputs_of(o, {}));
  const TranslationModels models(files, o, shards, say);
  output.refuse(inputs_of(o, models.directories()));
  FileTranslation(o, s, shards, models, output).run();
}

}  // namespace starling
