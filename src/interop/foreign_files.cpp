#include "interop/foreign_files.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>

#include "base/mapping_guard.h"
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

std::vector<std::string> ForeignFiles::ending(const std::string& end) const {
  std::vector<std::string> found;
  for (const std::string& name : names())
    if (name.ends_with(end)) found.push_back(name);
  return found;
}

std::string without_packing(const std::string& name) {
  for (const std::string_view end : {".gz", ".zst"})
    if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
  return name;
}

std::string unpacked(std::string content, const std::string& where) {
  constexpr size_t kPiece = size_t{1} << 20, kMost = size_t{8} << 30;
  const bool gzip = content.starts_with("\x1f\x8b"), zstd = content.starts_with("\x28\xb5\x2f\xfd");
  if (!gzip && !zstd) return content;
  const auto broken = [&] {
    throw DataError(fmt::format("{}: the {} archive is damaged; fetch it again", where, gzip ? "gzip" : "Zstandard"));
  };
  std::string whole;
  const auto grow = [&] {
    if (whole.size() > kMost) throw DataError(fmt::format("{}: it would have more than 8 GiB", where));
    whole.resize(whole.size() + kPiece);
    return whole.data() + whole.size() - kPiece;
  };
  if (gzip) {
    z_stream stream{};
    if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
    const std::unique_ptr<z_stream, int (*)(z_stream*)> ends(&stream, inflateEnd);
    stream.next_in = reinterpret_cast<Bytef*>(content.data());
    stream.avail_in = static_cast<uInt>(content.size());
    for (int status = Z_OK; status != Z_STREAM_END;) {
      stream.next_out = reinterpret_cast<Bytef*>(grow());
      stream.avail_out = kPiece;
      status = inflate(&stream, Z_NO_FLUSH);
      whole.resize(whole.size() - stream.avail_out);
      if (status != Z_STREAM_END && (status != Z_OK || (stream.avail_in == 0 && stream.avail_out > 0))) broken();
    }
    return whole;
  }
  const std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(), ZSTD_freeDStream);
  if (!stream) throw std::bad_alloc();
  ZSTD_inBuffer in{content.data(), content.size(), 0};
  for (size_t left = 1; left != 0;) {
    char* const to = grow();
    ZSTD_outBuffer out{to, kPiece, 0};
    left = ZSTD_decompressStream(stream.get(), &out, &in);
    whole.resize(whole.size() - kPiece + out.pos);
    if (ZSTD_isError(left) || (left != 0 && in.pos == in.size && out.pos < kPiece)) broken();
  }
  return whole;
}

std::unique_ptr<ForeignFiles> open_foreign(FileSystem& files, const std::string& path) {
  const FileInfo info = files.info(path);
  if (info.kind == FileKind::directory) return std::make_unique<Directory>(files, path, files.list(path));
  if (info.kind == FileKind::missing) throw ConfigError(fmt::format("{}: there is no such file or directory", path));
  if (!path.ends_with(".npz") && info.size > 0 && begins_as_zip(files, path)) return std::make_unique<Archive>(files, path);
  return std::make_unique<Directory>(files, parent_path(path), std::vector{file_name(path)});
}

}  // namespace starling
