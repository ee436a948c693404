// Fields as forms and curl -d send them: a=b&c=d.
#pragma once

#include <string_view>

#include "serve/http.h"

namespace starling {

// Adds the fields of a body, until there are `most`. What stands behind the first "=" of a field is its value, further ones included.
void take_urlencoded(std::string_view body, size_t most, NamedValues& fields);

}  // namespace starling
