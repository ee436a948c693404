#include "base/byte_budget.h"

#include "base/error.h"

namespace starling {

void ByteBudget::refuse(uint64_t bytes, const std::string& where, const char* what) const {
  throw DataError(fmt::format(
      "{}: {} would take {} MiB and more, where the size of the file allows {} MiB; it is damaged or was made to harm, so fetch it again",
      where, what, (taken_ + bytes) >> 20, allowed_ >> 20));
}

}  // namespace starling
