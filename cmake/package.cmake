# `make package`: a Debian package of the program, the library with its headers, the Python module, man pages, completions of shells and the
# unit for systemd. tools/try_package.sh installs it in an empty Debian.
if(NOT CMAKE_CROSSCOMPILING)
  # Man pages and completions, by the program itself, which asks its laboratory.
  install(CODE "
    set(share \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATAROOTDIR}\")
    execute_process(COMMAND \"$<TARGET_FILE:starling>\" manual --output \"\${share}\" COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)"
          COMPONENT program)
endif()
# The pages lie below the README as in the sources, so that its links lead to them; Debian looks for a licence under the name copyright.
install(FILES README.md SECURITY.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program RENAME copyright)
install(FILES packaging/starling.service DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT program)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME starling)
set(CPACK_PACKAGE_VENDOR Starling)
set(CPACK_PACKAGE_CONTACT "The Starling team")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "neural machine translation: trains, translates and serves")
set(CPACK_PACKAGE_DESCRIPTION "Starling trains models for machine translation on one core or a cluster and translates with them: by a\n\
command line, a server, a C++ and C library, and a Python module.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS openmpi-bin)
if(TARGET starling_python)
  math(EXPR next "${Python3_VERSION_MINOR} + 1")
  string(APPEND CPACK_DEBIAN_PACKAGE_RECOMMENDS ", python3 (>= 3.${Python3_VERSION_MINOR}), python3 (<< 3.${next})")
endif()
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/packaging/triggers ${CMAKE_SOURCE_DIR}/packaging/prerm)
include(CPack)
