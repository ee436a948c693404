// What a translator of the library is made of. translator.cpp opens it, search_options.cpp reads the options of a call, translating.cpp
// translates, sampling.cpp draws translations, alternatives.cpp finds alternatives, and scoring.cpp scores.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "batching/events.h"
#include "batching/scheduler.h"
#include "batching/workers.h"
#include "data/tokenize.h"
#include "decode/model_directory.h"
#include "library/requests.h"
#include "library/stopping.h"
#include "starling/translator.h"

namespace starling {

class v0::Translator::Impl {
 public:
  using Done = std::function<void(std::vector<Translation>, std::exception_ptr)>;
  using Strings = std::vector<std::string>;

  Impl(const std::string& path, const TranslatorOptions& options);

  // Whether this is the process that opened the translator. In a child of it the threads do not exist.
  bool in_its_process() const;

  const ModelInfo& info() const { return info_; }
  const Vocabularies& vocabularies() const { return loaded_.description.vocabularies; }
  const LoadedModel& loaded() const { return loaded_; }
  const std::string& device() const { return device_; }
  size_t under_way() const { return static_cast<size_t>(requests_.count()); }

  // Returns the search that a call asks for. Throws ConfigError.
  SearchOptions search_of(const TranslateOptions& options) const;

  // Throws DataError naming a sentence that is not UTF-8. `done` is called from a worker's thread, from that of cancel(), or from this one
  // if there is nothing to translate. Returns a number for cancel().
  int64_t submit(Strings sentences, const TranslateOptions& options, SentenceForm form, Done done);
  std::future<std::vector<Translation>> submit(Strings sentences, const TranslateOptions& options, SentenceForm form, int64_t* number);
  std::vector<Translation> translate(Strings sentences, const TranslateOptions& options, SentenceForm form);
  std::string translate_document(const std::string& text, Format format, TranslateOptions options);
  void cancel(int64_t number) { requests_.cancel(number); }
  // Waits until the workers have let go of what they had in progress, too.
  void cancel_all();

  // The sides are sentences of text, or of pieces with spaces between them.
  std::vector<Score> score(const Strings& sources, const Strings& targets, const TranslateOptions& options, SentenceForm form);

 private:
  // Cuts sentences after the last token that fits; returns which ones had more. Throws DataError for one that is not UTF-8.
  std::vector<bool> cut(Strings& sentences, const TranslateOptions& options, const SearchOptions& search, SentenceForm form,
                        Stopping& stopping) const;
  bool cut_text(std::string& sentence, size_t most) const;
  bool cut_pieces(std::string& sentence, size_t most) const;
  // Where the model reads no end of sentence by itself, but callers may give one as the last piece, as tokenizers of Hugging Face do:
  // takes that away, and returns whether there was one; and gives it back, with a second one that the model leaves out.
  bool takes_given_end(std::string& sentence) const;
  void give_end(std::string& sentence) const;
  std::vector<Translation> sampled(Strings sentences, const TranslateOptions& options, SentenceForm form);
  std::vector<Translation> alternatives(Strings sentences, const TranslateOptions& options, SentenceForm form);
  // Submits sentences that were cut.
  std::future<Scheduler::Outcome> search(Strings sentences, const SearchOptions& search, SentenceForm form, int64_t& number);
  Step step_of(size_t sentence, int64_t hypothesis, const std::vector<int32_t>& so_far, const StepToken& token) const;
  SentenceListeners listeners_of(size_t sentences, const TranslateOptions& options) const;
  Translation translation_of(const Candidates& candidates, bool cut, const std::string* source, SentenceForm form, bool confidence) const;
  // Sets the confidence of a translation and of its words.
  void add_confidence(const ::starling::Hypothesis& found, Hypothesis& h) const;
  // Whether a source begins with a tag of the model's.
  bool typed_tag(std::string_view source) const;
  std::vector<std::pair<int, int>> alignment_of(const ::starling::Hypothesis& h, const std::string& source, SentenceForm form) const;
  std::vector<EncodedPair> encoded_pairs(const Strings& sources, const Strings& targets, const SearchOptions& search, SentenceForm form,
                                         Stopping& stopping) const;

  const pid_t process_;
  LoadedModel loaded_;
  const std::string device_;
  const ModelInfo info_;
  const SearchOptions usual_;
  const int64_t most_tokens_;
  BatchingEvents events_;
  Scheduler scheduler_;
  Requests requests_;
  std::mutex model_;  // of loaded_.model, which scoring and sampling use
  Workers workers_;   // declared last, so that they end first
};

// Returns tokens with spaces between them. Throws ConfigError for one that has a space.
std::string joined(const std::vector<std::string>& tokens);
std::vector<std::string> joined(const std::vector<std::vector<std::string>>& sentences);
// Returns the bytes of a text to split first: all of it if it has at most `most`, else up to the last space or whole character in them.
size_t first_bytes(std::string_view text, size_t most);
// Runs f(given_up) in a thread of its own. OpenMP keeps the threads that it starts for the thread that asked for them; if that were a
// caller's, a process that the caller forks would wait for threads that it does not have. When the caller gives up, `given_up` becomes
// true; f should look at it now and then, and throw.
void in_own_thread(Stopping& stopping, const std::function<void(const std::atomic<bool>& given_up)>& f);
// Throws DataError naming the first text that is not UTF-8, as "sentence 3: ...".
void require_utf8(const std::vector<std::string>& texts, const char* each);

}  // namespace starling
