#include "interop/foreign_files.h"

#include <algorithm>

#include "base/mapping_guard.h"
#include "data/line_reader.h"
#include "interop/zip.h"

namespace starling {
namespace {

class Directory : public ForeignFiles {
 public:
  Directory(FileSystem& files, std::string path, std::vector<std::string> names) : files_(files), path_(std::move(path)) {
    for (const std::string& name : names) {
      const FileKind kind = files.info(join_path(path_, name)).kind;
      if (kind == FileKind::file) names_.push_back(name);
      if (kind != FileKind::directory) continue;
      for (const std::string& inner : files.list(join_path(path_, name)))
        if (files.info(join_path(join_path(path_, name), inner)).kind == FileKind::file) names_.push_back(name + "/" + inner);
    }
    std::sort(names_.begin(), names_.end());
  }
  const std::vector<std::string>& names() const override { return names_; }
  std::string read(const std::string& name) const override { return files_.read_file(where(name)); }
  std::string where(const std::string& name) const override { return join_path(path_, name); }

 private:
  FileSystem& files_;
  std::string path_;
  std::vector<std::string> names_;
};

class Archive : public ForeignFiles {
 public:
  Archive(FileSystem& files, const std::string& path)
      : path_(path), mapping_(files.map(path)), guard_(mapping_->bytes(), path), zip_(mapping_->bytes(), path) {
    for (const ZipEntry& e : zip_.entries())
      if (!e.name.ends_with('/')) names_.push_back(e.name);
    if (names_.empty()) return;
    const std::string folder = names_.front().substr(0, names_.front().find('/') + 1);
    if (std::all_of(names_.begin(), names_.end(), [&](const std::string& name) { return name.starts_with(folder); })) {
      for (std::string& name : names_) name.erase(0, folder.size());
      folder_ = folder;
    }
    std::sort(names_.begin(), names_.end());
  }
  const std::vector<std::string>& names() const override { return names_; }
  std::string read(const std::string& name) const override {
    const ZipEntry* entry = zip_.find(folder_ + name);
    CHECK(entry, "{} is not in {}", name, path_);
    std::string content = zip_.read(*entry);
    guard_.require_whole();
    return content;
  }
  std::string where(const std::string& name) const override { return path_ + ": " + name; }

 private:
  std::string path_, folder_;
  std::unique_ptr<MappedFile> mapping_;
  MappingGuard guard_;
  ZipArchive zip_;
  std::vector<std::string> names_;
};

bool begins_as_zip(FileSystem& files, const std::string& path) {
  const auto mapping = files.map(path);
  const MappingGuard guard(mapping->bytes(), path);
  return is_zip(mapping->bytes());
}

}  // namespace

bool ForeignFiles::has(const std::string& name) const { return std::binary_search(names().begin(), names().end(), name); }

std::string without_packing(const std::string& name) {
  for (const std::string_view end : {".gz", ".zst"})
    if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
  return name;
}

std::string unpacked(std::string content, const std::string& where) {
  constexpr size_t kPiece = size_t{1} << 20, kMost = size_t{8} << 30;
  const auto archive = open_archive(content);
  if (!archive) return content;
  std::string whole;
  try {
    for (size_t got = kPiece; got > 0;) {
      if (whole.size() > kMost) throw DataError("it would have more than 8 GiB");
      const size_t before = whole.size();
      whole.resize(before + kPiece);
      got = archive->read(whole.data() + before, kPiece);
      whole.resize(before + got);
    }
  } catch (const DataError& e) {
    throw DataError(fmt::format("{}: {}", where, e.what()));
  }
  return whole;
}

ForeignFile read_foreign(FileSystem& files, const ForeignFiles& folder, const std::string& path) {
  const bool inside = folder.has(path);
  const std::string where = inside ? folder.where(path) : path;
  return {path, where, unpacked(inside ? folder.read(path) : files.read_file(path), where)};
}

std::unique_ptr<ForeignFiles> open_foreign(FileSystem& files, const std::string& path) {
  const FileInfo info = files.info(path);
  if (info.kind == FileKind::directory) return std::make_unique<Directory>(files, path, files.list(path));
  if (info.kind == FileKind::missing) throw ConfigError(fmt::format("{}: there is no such file or directory", path));
  if (!path.ends_with(".npz") && info.size > 0 && begins_as_zip(files, path)) return std::make_unique<Archive>(files, path);
  return std::make_unique<Directory>(files, parent_path(path), std::vector{file_name(path)});
}

}  // namespace starling
