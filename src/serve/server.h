// The complete server: starts everything, listens, loads the models, waits for signals, and shuts down in order.
#pragma once

#include <string>
#include <vector>

#include "http/http.h"
#include "serve/models.h"
#include "serve/service.h"

namespace starling {

struct ServeOptions {
  std::vector<std::string> models;
  std::vector<std::string> packages;  // models that are left out if they cannot be served, or if `models` have their direction
  std::string listen = "127.0.0.1:5000";
  std::string access_log = "-", api_keys;
  HttpLimits http;
  ModelOptions model;
  ServiceOptions service;
};

// Serves until SIGTERM or SIGINT, then answers the requests in progress and returns; a second signal returns without waiting for them.
// Throws ConfigError and the errors of loading models if it cannot start.
void serve(const ServeOptions& options);

}  // namespace starling
