// The target test_headers needs a source; what it is for are its precompiled headers (CMakeLists.txt).
