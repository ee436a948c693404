// The one exception that the library throws.
#pragma once

#include <stdexcept>
#include <string>

#include "starling/export.h"

STARLING_NAMESPACE_BEGIN

enum class ErrorKind {
  usage = 1,  // an option, a configuration or a path is wrong; the message ends with the fix
  data,       // a file or text is not what it should be; the message names file and line where there are any
  io,         // the operating system refused a file operation
  memory,     // what was asked for needs more memory or threads than there are
  training,   // the loss is not finite, or another rank was lost
  internal,   // a defect of the library
  cancelled,  // the caller gave it up: TranslateOptions::stop, Translator::cancel()
};

class STARLING_API Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ~Error() override;
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

STARLING_NAMESPACE_END
