#include "cli/program.h"

int main(int argc, char** argv) { return starling::run_program(argc, argv); }
