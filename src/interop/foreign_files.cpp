#include "interop/foreign_files.h"

#include <algorithm>
#include <map>

#include "base/mapping_guard.h"
#include "base/utf8.h"
#include "data/line_reader.h"
#include "interop/stand_ins.h"
#include "interop/zip.h"

namespace starling {
namespace {

constexpr size_t kBegin = 512;  // bytes that tell what stands in for a file

// People's own words may be HTML.
bool may_be_html(const std::string& name) { return name.ends_with(".md") || name.ends_with(".html") || name.starts_with("LICENSE"); }

void refuse_other(const std::string& name, std::string_view content, const std::string& where) {
  if (!may_be_html(name)) refuse_stand_in(content.substr(0, kBegin), where);
}

// Whether the name of an archive's entry may stand in messages and on a disk; no program writes others.
bool is_printable(std::string_view name) {
  constexpr size_t kMostName = 1024;
  return name.size() <= kMostName && !invalid_utf8_offset(name) &&
         std::none_of(name.begin(), name.end(), [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; });
}

class Directory : public ForeignFiles {
 public:
  Directory(FileSystem& files, std::string path, bool below) : files_(files), path_(std::move(path)) {
    for (const std::string& name : files.list(path_)) {
      const FileKind kind = files.info(join_path(path_, name)).kind;
      if (kind == FileKind::file) names_.push_back(name);
      if (kind == FileKind::directory && below) add_below(name);
    }
    std::sort(names_.begin(), names_.end());
  }
  const std::vector<std::string>& names() const override { return names_; }
  std::string read(const std::string& name) const override {
    std::string content = files_.read_file(where(name));
    refuse_other(name, content, where(name));
    return content;
  }
  std::string peek(const std::string& name, size_t most) const override {
    if (files_.info(where(name)).size == 0) return "";
    const auto mapping = files_.map(where(name));
    const MappingGuard guard(mapping->bytes(), where(name));
    const std::span<const std::byte> bytes = mapping->bytes().first(std::min(mapping->bytes().size(), std::max(most, kBegin)));
    std::string begin(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    guard.require_whole();
    refuse_other(name, begin, where(name));
    return begin.substr(0, most);
  }
  std::string where(const std::string& name) const override { return name.empty() ? path_ : join_path(path_, name); }
  std::string directory() const override { return path_; }

 private:
  // A folder that cannot be read has nothing for us.
  void add_below(const std::string& name) {
    try {
      for (const std::string& inner : files_.list(join_path(path_, name)))
        if (files_.info(join_path(join_path(path_, name), inner)).kind == FileKind::file) names_.push_back(name + "/" + inner);
    } catch (const IoError&) {
    }
  }

  FileSystem& files_;
  std::string path_;
  std::vector<std::string> names_;
};

class Archive : public ForeignFiles {
 public:
  Archive(FileSystem& files, const std::string& path)
      : path_(path), mapping_(files.map(path)), guard_(mapping_->bytes(), path), zip_(mapping_->bytes(), path) {
    for (const ZipEntry& e : zip_.entries())  // macOS adds a file of its own for each
      if (!e.name.ends_with('/') && !e.name.starts_with("__MACOSX/") && is_printable(e.name) && entries_.emplace(e.name, &e).second)
        names_.push_back(e.name);
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
    std::string content = zip_.read(entry_of(name));
    guard_.require_whole();
    refuse_other(name, content, where(name));
    return content;
  }
  std::string peek(const std::string& name, size_t most) const override {
    std::string begin = zip_.read_begin(entry_of(name), std::max(most, kBegin));
    guard_.require_whole();
    refuse_other(name, begin, where(name));
    return begin.substr(0, most);
  }
  std::string where(const std::string& name) const override { return name.empty() ? path_ : path_ + ": " + name; }

 private:
  const ZipEntry& entry_of(const std::string& name) const {
    const auto found = entries_.find(folder_ + name);
    CHECK(found != entries_.end(), "{} is not in {}", name, path_);
    return *found->second;
  }

  std::string path_, folder_;
  std::unique_ptr<MappedFile> mapping_;
  MappingGuard guard_;
  ZipArchive zip_;
  std::map<std::string, const ZipEntry*> entries_;
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

bool at_top(const std::string& name) { return name.find('/') == std::string::npos; }

std::string peek_unpacked(const ForeignFiles& folder, const std::string& name, size_t most) {
  constexpr size_t kBlock = size_t{256} << 10;  // more than the largest block of Zstandard
  const bool packed = without_packing(name) != name;
  std::string begin = folder.peek(name, packed ? kBlock : most);
  const auto archive = packed ? open_archive(begin) : nullptr;
  if (!archive) return begin.substr(0, most);
  std::string whole(most, '\0');
  try {
    whole.resize(archive->read(whole.data(), most));
  } catch (const DataError& e) {
    throw DataError(fmt::format("{}: {}", folder.where(name), e.what()));
  }
  return whole;
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
  std::string content = inside ? folder.read(path) : files.read_file(path);
  refuse_other(path, content, where);
  return {path, where, unpacked(std::move(content), where)};
}

std::unique_ptr<ForeignFiles> open_foreign(FileSystem& files, const std::string& path) {
  const FileInfo info = files.info(path);
  if (info.kind == FileKind::missing) throw ConfigError(fmt::format("{}: there is no such file or directory", path));
  if (info.kind == FileKind::other) throw ConfigError(fmt::format("{}: is neither a file nor a directory; name the model's", path));
  if (info.kind == FileKind::directory) return std::make_unique<Directory>(files, path, true);
  if (info.kind == FileKind::file && !without_packing(path).ends_with(".npz") && info.size > 0 && begins_as_zip(files, path))
    return std::make_unique<Archive>(files, path);
  return std::make_unique<Directory>(files, parent_path(path), false);
}

}  // namespace starling
