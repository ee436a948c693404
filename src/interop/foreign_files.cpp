#include "interop/foreign_files.h"

#include <algorithm>
#include <map>

#include "base/mapping_guard.h"
#include "base/quotes.h"
#include "base/utf8.h"
#include "data/line_reader.h"
#include "formats/zip.h"
#include "interop/ct2_file.h"
#include "interop/marian_bin.h"
#include "interop/stand_ins.h"

namespace starling {
namespace {

constexpr size_t kBegin = 512;                   // bytes that tell what a file is, or what stands in for it
constexpr size_t kMostFiles = 20'000;            // in a folder or an archive
constexpr uint64_t kMostExpansionOfWeights = 3;  // bytes of packed weights, besides their own

// Whether the first bytes are those of a file of weights, which may be packed well.
bool is_weights(std::string_view begin) {
  const bool safetensors = begin.size() > 8 && begin[8] == '{';
  return is_zip(std::as_bytes(std::span(begin))) || is_marian_bin(begin) || is_ct2(begin) || safetensors;
}

// People's own words may be HTML.
bool may_be_html(const std::string& name) { return name.ends_with(".md") || name.ends_with(".html") || name.starts_with("LICENSE"); }

void refuse_other(const std::string& name, std::string_view content, const std::string& where) {
  if (!may_be_html(name)) refuse_stand_in(content.substr(0, kBegin), where);
}

// Whether the name of an archive's entry may stand in messages and on a disk; no program writes others.
bool is_printable(std::string_view name) { return printable(name) == name; }

class Directory : public ForeignFiles {
 public:
  Directory(FileSystem& files, std::string path, bool below) : files_(files), path_(std::move(path)) {
    for (const std::string& name : files.list(path_)) {
      const FileKind kind = kind_of(join_path(path_, name));
      if (kind == FileKind::file && names_.size() < kMostFiles) names_.push_back(name);
      if (kind == FileKind::directory && below) add_below(name);
    }
    std::sort(names_.begin(), names_.end());
  }
  const std::vector<std::string>& names() const override { return names_; }
  std::string read(const std::string& name) const override {
    budget().allow(files_.info(where(name)).size);
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
  // What cannot be looked at, such as a link that leads to itself, is not there for us.
  FileKind kind_of(const std::string& path) {
    try {
      return files_.info(path).kind;
    } catch (const IoError&) {
      return FileKind::missing;
    }
  }
  // A folder that cannot be read has nothing for us.
  void add_below(const std::string& name) {
    try {
      for (const std::string& inner : files_.list(join_path(path_, name)))
        if (names_.size() < kMostFiles && kind_of(join_path(join_path(path_, name), inner)) == FileKind::file)
          names_.push_back(name + "/" + inner);
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
    budget().allow(mapping_->bytes().size());
    if (zip_.entries().size() > kMostFiles)
      throw DataError(fmt::format("{}: has {} files, which no model has", path_, zip_.entries().size()));
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
    const ZipEntry& entry = entry_of(name);
    if (entry.deflated && is_weights(zip_.read_begin(entry, kBegin))) budget().allow(kMostExpansionOfWeights * entry.packed_size);
    budget().take(entry.size, where(name), "unpacking it");
    std::string content = zip_.read(entry);
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
    CHECK(found != entries_.end(), "{} is not in {}", printable(name), path_);
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

std::string unpacked(std::string content, const std::string& where, ByteBudget& budget) {
  constexpr size_t kPiece = size_t{256} << 10;
  std::string piece(kPiece, '\0'), whole;
  bool is_packed = false;
  // Passes on the unpacked bytes, piece by piece.
  const auto unpack = [&](auto take) {
    const auto archive = open_archive(content);
    is_packed = archive != nullptr;
    while (const size_t got = archive ? archive->read(piece.data(), kPiece) : 0) take(std::string_view(piece).substr(0, got));
  };
  try {
    uint64_t size = 0;  // counted before a byte is kept
    unpack([&](std::string_view bytes) {
      if (size == 0 && is_weights(bytes)) budget.allow(kMostExpansionOfWeights * content.size());
      size += bytes.size();
      if (size > budget.left()) budget.take(size, where, "unpacking it");
    });
    if (!is_packed) return content;
    budget.take(size, where, "unpacking it");
    whole.reserve(size);
    unpack([&](std::string_view bytes) { whole += bytes; });
  } catch (const DataError& e) {
    const std::string_view what = e.what();
    throw DataError(what.starts_with(where) ? std::string(what) : fmt::format("{}: {}", where, what));
  }
  return whole;
}

ForeignFile read_foreign(FileSystem& files, const ForeignFiles& folder, const std::string& path) {
  const bool inside = folder.has(path);
  const std::string where = inside ? folder.where(path) : path;
  if (!inside) folder.budget().allow(files.info(path).size);
  std::string content = inside ? folder.read(path) : files.read_file(path);
  refuse_other(path, content, where);
  return {path, where, unpacked(std::move(content), where, folder.budget())};
}

std::unique_ptr<ForeignFiles> open_foreign(FileSystem& files, const std::string& path) {
  if (path.empty()) throw ConfigError("no model was named: its path is empty; give a file or a directory");
  const FileInfo info = files.info(path);
  if (info.kind == FileKind::missing) throw ConfigError(fmt::format("{}: there is no such file or directory", path));
  if (info.kind == FileKind::other) throw ConfigError(fmt::format("{}: is neither a file nor a directory; name the model's", path));
  if (info.kind == FileKind::directory) return std::make_unique<Directory>(files, path, true);
  if (info.kind == FileKind::file && !without_packing(path).ends_with(".npz") && info.size > 0 && begins_as_zip(files, path))
    return std::make_unique<Archive>(files, path);
  return std::make_unique<Directory>(files, parent_path(path), false);
}

}  // namespace starling
