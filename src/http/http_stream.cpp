#include "http/http_stream.h"

#include <algorithm>

namespace starling {

void HttpStream::write(std::string_view bytes) {
  std::function<void()> more;
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || bytes.empty()) return;
    unsent_.append(bytes);
    more = more_;
  }
  if (more) more();
}

void HttpStream::end() {
  std::function<void()> more;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    more = more_;
  }
  if (more) more();
}

bool HttpStream::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

bool HttpStream::caught_up() const {
  const std::lock_guard lock(mutex_);
  return unsent_.empty();
}

void HttpStream::attach(std::function<void()> more) {
  const std::lock_guard lock(mutex_);
  more_ = std::move(more);
}

size_t HttpStream::take(char* to, size_t most) {
  const std::lock_guard lock(mutex_);
  const size_t count = std::min(most, unsent_.size() - taken_);
  std::copy_n(unsent_.data() + taken_, count, to);
  taken_ += count;
  if (taken_ == unsent_.size()) {
    unsent_.clear();
    taken_ = 0;
  }
  return count;
}

}  // namespace starling
