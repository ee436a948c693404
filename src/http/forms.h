// Fields as forms and curl send them: urlencoded (a=b&c=d) and multipart/form-data (RFC 7578). libmicrohttpd has a parser of both, which
// refuses values with "=" in them, boundaries of one character and further parameters behind the boundary, and loses fields in silence.
#pragma once

#include <string>
#include <string_view>

#include "http/http.h"

namespace starling {

// Where the body is a form, puts its fields behind those that the request has, until there are `most`, and takes the body away. What stands
// behind the first "=" of an urlencoded field is its value. Gives what is wrong with a multipart form, ending with the fix; "" when
// nothing.
std::string take_form(HttpRequest& request, size_t most);

}  // namespace starling
