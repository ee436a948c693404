// Bytes of models of other programs: the first one says which reader gets the rest.
#include "base/error.h"
#include "interop/ct2.h"
#include "interop/marian.h"
#include "interop/marian_bin.h"
#include "interop/npz.h"
#include "interop/zip.h"
#include "text/vocabulary_format.h"

using namespace starling;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  try {
    switch (data[0] % 7) {
      case 0: {
        const Ct2File file = read_ct2(bytes, "fuzz");
        ct2_tensors(file, ct2_config(file, "fuzz"), "fuzz");
        break;
      }
      case 1:
        read_marian_bin(bytes, "fuzz");
        break;
      case 2:
        read_npz(std::as_bytes(std::span(bytes)), "fuzz");
        break;
      case 3: {
        const ZipArchive zip(std::as_bytes(std::span(bytes)), "fuzz");
        for (const ZipEntry& e : zip.entries()) zip.read(e);
        break;
      }
      case 4:
        marian_config(bytes, "fuzz");
        marian_search(bytes, "fuzz");
        break;
      case 5:
        marian_pieces(bytes, "fuzz");
        break;
      default:
        unpacked(bytes, "fuzz");
    }
  } catch (const Error&) {
  }
  return 0;
}
