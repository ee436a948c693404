#include "serve/file_translation.h"

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <mutex>

#include "formats/file_format.h"
#include "formats/unit_file.h"
#include "serve/directions.h"

namespace starling {
namespace {

constexpr size_t kPiece = size_t{16} << 10;  // bytes that are in the queues at once
constexpr auto kTick = std::chrono::milliseconds(100);

struct FileStopped {};  // nobody waits for the translation any more

bool alike(const TextUnit& a, const TextUnit& b) { return a.format == b.format && a.options == b.options; }

std::string detected_language(std::span<const TextUnit> units, std::span<const Direction> directions, const std::string& target) {
  std::string words;
  for (const TextUnit& unit : units) {
    words += Document(unit.text, unit.format, "", unit.options).words();
  }
  return detect_languages(words, possible_languages(directions, target)).front().language;
}

// Starts a translation and waits for it; nothing if it was stopped.
std::optional<JobResult> wait_for(ModelSet& models, const TextQuery& query, const JobOptions& options, double deadline,
                                  const std::shared_ptr<JobSize>& size, const FileWatch& watch) {
  struct Answer {
    std::mutex mutex;
    std::condition_variable there;
    std::optional<JobResult> result;
  };
  const auto answer = std::make_shared<Answer>();
  const auto cancel = start_translation(models, query, options, serve_seconds(), deadline, size, [answer](JobResult result) {
    const std::lock_guard lock(answer->mutex);
    answer->result = std::move(result);
    answer->there.notify_one();
  });
  std::unique_lock lock(answer->mutex);
  while (!answer->result) {
    if (watch.stopped()) {
      lock.unlock();
      cancel();
      return std::nullopt;
    }
    answer->there.wait_for(lock, kTick);
  }
  return std::move(answer->result);
}

// Translates units that are alike. Where the queue is full it waits for its turn, since nobody sends a file again for that.
void translate_units(ModelSet& models, const TextQuery& query, const JobOptions& options, double deadline, JobSize& size,
                     const FileWatch& watch, std::vector<std::string>& translations) {
  for (int refused_alone = 0;;) {
    const auto part = std::make_shared<JobSize>();
    auto result = wait_for(models, query, options, deadline, part, watch);
    if (!result) throw FileStopped();
    if (!result->error) {
      for (TranslatedText& t : result->texts) translations.push_back(std::move(t.text));
      size.sentences += part->sentences;
      size.characters += part->characters;
      size.pivoted += part->pivoted;
      return;
    }
    // Where it is refused though nothing else waits, it would be for ever.
    const bool alone = std::ranges::all_of(models.all(), [](const auto& model) { return model->scheduler().queued() == 0; });
    refused_alone = alone ? refused_alone + 1 : 0;
    if (refused_alone == 2)
      throw ApiError(400, "one part of the file has more sentences than this server's queue can hold; split the file");
    const double again = serve_seconds() + std::clamp(result->error->retry_seconds, 1, 5);
    if (result->error->status != 429 || again >= deadline) throw *result->error;
    while (serve_seconds() < again) {
      if (watch.stopped()) throw FileStopped();
      std::this_thread::sleep_for(kTick);
    }
  }
}

}  // namespace

std::string supported_format(const FileQuery& file) {
  try {
    return file_format(file.bytes, file.name);
  } catch (const Error& e) {
    throw ApiError(400, e.what());
  }
}

std::optional<std::string> translate_file(ModelSet& models, FileQuery file, JobOptions options, uint64_t most_unpacked, double deadline,
                                          JobSize& size, const FileWatch& watch) {
  options.sentences = std::numeric_limits<int64_t>::max();  // the size of files has a limit of its own
  try {
    const std::string format = supported_format(file);
    const std::vector<Direction> directions = reachable(models.directions(), options.pivots);
    TextQuery query;
    query.list = true;
    query.target = nearest_language(languages_of(directions), file.target);
    query.glossary = file.glossary;
    query.source = file.source;
    if (file.source == "auto") {
      const auto open = open_unit_file(format, file.bytes, {"", query.target, {}}, most_unpacked);
      query.source = detected_language(open->first_units(), directions, query.target);
    }
    const auto open = open_unit_file(format, std::move(file.bytes), {query.source, query.target, {}}, most_unpacked);
    const double all = 1 + static_cast<double>(open->text_bytes());
    double done = 0;
    const auto translate = [&](std::span<const TextUnit> units) {
      std::vector<std::string> translations;
      for (size_t i = 0; i < units.size();) {
        size_t bytes = 0;
        query.format = units[i].format;
        query.document = units[i].options;
        query.texts.clear();
        for (const size_t first = i; i < units.size() && bytes < kPiece && alike(units[first], units[i]); ++i) {
          query.texts.push_back(units[i].text);
          bytes += units[i].text.size();
        }
        if (serve_seconds() > deadline)
          throw ApiError(504, "the translation was not finished before the deadline; send a smaller file, or try again later");
        translate_units(models, query, options, deadline, size, watch, translations);
        done += static_cast<double>(bytes);
        watch.share(done / all);
      }
      return translations;
    };
    std::string out;
    open->translate(translate, [&](std::string_view bytes) { out += bytes; });
    return out;
  } catch (const FileStopped&) {
    return std::nullopt;
  } catch (const ConfigError& e) {
    throw ApiError(400, e.what());
  } catch (const DataError& e) {
    throw ApiError(400, e.what());
  }
}

}  // namespace starling
