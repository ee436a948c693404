// The real file system under a test's hand: a test overrides the one operation that is to go wrong, all others are passed on.
#pragma once

#include "base/files.h"

namespace starling {

class ForwardingFiles : public FileSystem {
 public:
  std::unique_ptr<OutputFile> create(const std::string& path, uint64_t expected) override { return real_->create(path, expected); }
  void read_pieces(const std::string& path, const std::function<void(std::span<const std::byte>)>& take) override {
    real_->read_pieces(path, take);
  }
  std::unique_ptr<MappedFile> map(const std::string& path) override { return real_->map(path); }
  void rename(const std::string& from, const std::string& to) override { real_->rename(from, to); }
  bool exchange(const std::string& a, const std::string& b) override { return real_->exchange(a, b); }
  bool remove(const std::string& path) override { return real_->remove(path); }
  bool make_directory(const std::string& path) override { return real_->make_directory(path); }
  void sync_directory(const std::string& path) override { real_->sync_directory(path); }
  std::vector<std::string> list(const std::string& path) override { return real_->list(path); }
  FileInfo info(const std::string& path) override { return real_->info(path); }

 private:
  std::unique_ptr<FileSystem> real_ = real_file_system();
};

}  // namespace starling
