// Training text that comes from a pipe and need not end: pairs source <tab> target [<tab> what is not used], as OpusTrainer writes them. A
// thread of its own cuts the lines into windows, files in <run>/stream, and makes their tokens while the window before is trained on. Each
// window is shuffled and shown once: it is an epoch of the run. One in which every line is left out grows until it has text. Windows are
// kept until no checkpoint needs them, and every line that was read counts in the record, so that a resumed run continues exactly, and says
// with which line the producer has to go on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/task_progress.h"
#include "data/token_store.h"

namespace starling {

class TextStream {
 public:
  // data: of one corpus with tsv "-" or a named pipe. Continues the record in `directory`, if there is one, for a run that goes on with
  // window `first`. Throws DataError if that window is not there any more, or IoError. `say` is called by the thread that calls wait().
  TextStream(FileSystem& files, const std::string& directory, const DataOptions& data, const Vocabulary& source, const Vocabulary& target,
             int64_t first, Say say);
  // Stops reading. What has been read is in the record.
  ~TextStream();
  TextStream(const TextStream&) = delete;
  TextStream& operator=(const TextStream&) = delete;

  // empty: the window has no pair that the filters keep. ended: the text has ended before it. stopped: `stop` returned true.
  enum class Ready { yes, empty, ended, stopped };
  // Waits for a window. Throws what went wrong in reading.
  Ready wait(int64_t window, const std::function<bool()>& stop);
  // Returns the tokens of a window for which wait() returned yes.
  const TokenStore& tokens(int64_t window) const;
  // Removes the windows before this one.
  void keep_from(int64_t window);

  // Returns names and SHA-256 digests of the windows that are kept, for a checkpoint to know them by.
  std::string digests() const;
  // Throws DataError if a window that is kept has another digest.
  void require_windows(const std::string& digests) const;

  int64_t lines() const;   // read in all starts
  int64_t broken() const;  // of those read in this start, that were not pairs of valid text

 private:
  void read(int64_t window);
  void open();
  bool make_window(int64_t window);
  bool fill_next();
  // Whether the window that is being filled, with this many more lines, is not full.
  bool wants_lines(int64_t more = 0) const { return next_lines_ + more < data_.window_lines || !next_has_text_; }
  void take(std::string_view bytes);
  std::string checked(std::string_view line, int64_t number);
  std::string broken_line(const char* wrong, int64_t number);
  void finish_next(int64_t window);
  void build(int64_t window);
  void save_record() const;
  std::string path(const std::string& name) const { return join_path(directory_, name); }
  static std::string window_name(int64_t window);
  std::string window_path(int64_t window) const;
  std::string tokens_path(int64_t window) const;

  FileSystem& files_;
  const std::string directory_;
  const DataOptions data_;
  const Vocabulary &source_, &target_;
  const Say say_;
  int pipe_ = -1, next_ = -1;                // files: the text, and the window that is being filled
  int64_t windows_ = 0, window_lines_ = 0;   // complete windows, and their lines, of all starts
  int64_t next_lines_ = 0;                   // complete lines of the window that is being filled
  bool next_has_text_ = false;               // whether any of them is more than a line that is left out
  std::string rest_;                         // of a line that is not complete
  bool written_ = false, too_long_ = false;  // whether there was a writer; whether the incomplete line is no text

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, TokenStore> tokens_;
  std::map<std::string, std::string> digests_;  // by the names of windows
  int64_t wanted_;                              // the last window that was asked for
  int64_t oldest_;                              // the first window that is kept
  int64_t lines_ = 0, broken_ = 0;
  int64_t end_ = -1;  // the number of windows, once the text has ended
  std::exception_ptr failure_;
  bool closing_ = false;
  std::vector<std::string> messages_;  // of the thread, which wait() says
  std::thread thread_;
};

// Returns whether the text of a run is a stream: one corpus whose tsv is standard input or a named pipe.
bool is_stream(const DataOptions& data);

}  // namespace starling
