#include "cli/starling.h"

int main(int argc, char** argv) { return starling::run_starling(argc, argv); }
