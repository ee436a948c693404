// What the library shows, and its namespace. Names are in starling; the inline namespace in their symbols keeps programs from running with
// a library of another interface.
#pragma once

#define STARLING_API __attribute__((visibility("default")))
#ifdef STARLING_BUILDING_LIBRARY  // its own names of the same spelling are in starling
#define STARLING_NAMESPACE_BEGIN \
  namespace starling {           \
  namespace v0 {
#else
#define STARLING_NAMESPACE_BEGIN \
  namespace starling {           \
  inline namespace v0 {
#endif
#define STARLING_NAMESPACE_END \
  }                            \
  }
