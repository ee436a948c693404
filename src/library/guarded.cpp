#include "library/guarded.h"

#include <new>

#include "base/resource_error.h"
#include "starling/version.h"

namespace starling {

v0::Error::~Error() = default;

const char* v0::version() { return STARLING_VERSION; }

void rethrow_for_callers() {
  using v0::ErrorKind;
  try {
    throw;
  } catch (const v0::Error&) {
    throw;
  } catch (const ResourceError& e) {
    throw v0::Error(ErrorKind::memory, e.what());
  } catch (const ConfigError& e) {
    throw v0::Error(ErrorKind::usage, e.what());
  } catch (const DataError& e) {
    throw v0::Error(ErrorKind::data, e.what());
  } catch (const IoError& e) {
    throw v0::Error(ErrorKind::io, e.what());
  } catch (const DivergedError& e) {
    throw v0::Error(ErrorKind::training, e.what());
  } catch (const PeerError& e) {
    throw v0::Error(ErrorKind::training, e.what());
  } catch (const std::bad_alloc&) {
    throw v0::Error(ErrorKind::memory, "not enough memory");
  } catch (const std::exception& e) {
    throw v0::Error(ErrorKind::internal, e.what());
  }
}

}  // namespace starling
