#include "laboratory/laboratory.h"

int main(int argc, char** argv) { return starling::run_laboratory(argc, argv); }
