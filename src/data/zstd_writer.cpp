#include "data/zstd_writer.h"

#include <zstd.h>

#include <span>

namespace starling {

struct ZstdWriter::State {
  std::unique_ptr<OutputFile> file;
  std::unique_ptr<ZSTD_CStream, size_t (*)(ZSTD_CStream*)> stream{ZSTD_createCStream(), &ZSTD_freeCStream};
  std::vector<std::byte> packed = std::vector<std::byte>(ZSTD_CStreamOutSize());

  void step(std::string_view text, ZSTD_EndDirective how) {
    ZSTD_inBuffer in{text.data(), text.size(), 0};
    for (size_t left = 1; left > 0;) {
      ZSTD_outBuffer out{packed.data(), packed.size(), 0};
      left = ZSTD_compressStream2(stream.get(), &out, &in, how);
      CHECK(!ZSTD_isError(left), "libzstd: {}", ZSTD_getErrorName(left));
      if (out.pos > 0) file->write(std::span(packed).first(out.pos));
      if (how == ZSTD_e_continue && in.pos == in.size) break;
    }
  }
};

ZstdWriter::ZstdWriter(FileSystem& files, const std::string& path, int level) : state_(std::make_unique<State>()) {
  if (!state_->stream) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(state_->stream.get(), ZSTD_c_compressionLevel, level);
  state_->file = files.create(path);
}
ZstdWriter::~ZstdWriter() = default;
ZstdWriter::ZstdWriter(ZstdWriter&&) noexcept = default;

void ZstdWriter::write(std::string_view text) { state_->step(text, ZSTD_e_continue); }

void ZstdWriter::close() {
  state_->step("", ZSTD_e_end);
  state_->file->sync();
  state_->file->close();
}

}  // namespace starling
