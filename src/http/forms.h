// Parses form fields as browsers and curl send them: urlencoded (a=b&c=d) and multipart/form-data (RFC 7578). libmicrohttpd's own parser
// refuses values that contain "=", boundaries of one character and further parameters after the boundary, and silently loses fields.
#pragma once

#include <string>
#include <string_view>

#include "http/http.h"

namespace starling {

// If the body is a form, appends its fields to the request's until there are `most`, and clears the body. Everything after the first "=" of
// an urlencoded field is its value. Returns what is wrong with a multipart form and how to fix it, or "".
std::string take_form(HttpRequest& request, size_t most);

}  // namespace starling
