// The real file system under a test's hand: a test overrides the one operation that is to go wrong, or where a path leads; all else is
// passed on.
#pragma once

#include "base/files.h"

namespace starling {

class ForwardingFiles : public FileSystem {
 public:
  std::unique_ptr<OutputFile> create(const std::string& path, uint64_t expected) override { return at(path).create(path, expected); }
  void read_pieces(const std::string& path, const std::function<void(std::span<const std::byte>)>& take) override {
    at(path).read_pieces(path, take);
  }
  std::unique_ptr<MappedFile> map(const std::string& path) override { return at(path).map(path); }
  void rename(const std::string& from, const std::string& to) override { at(from).rename(from, to); }
  bool exchange(const std::string& a, const std::string& b) override { return at(a).exchange(a, b); }
  bool remove(const std::string& path) override { return at(path).remove(path); }
  bool make_directory(const std::string& path) override { return at(path).make_directory(path); }
  void sync_directory(const std::string& path) override { at(path).sync_directory(path); }
  std::vector<std::string> list(const std::string& path) override { return at(path).list(path); }
  FileInfo info(const std::string& path) override { return at(path).info(path); }

 protected:
  virtual FileSystem& at(const std::string&) { return *real_; }

 private:
  std::unique_ptr<FileSystem> real_ = real_file_system();
};

}  // namespace starling
