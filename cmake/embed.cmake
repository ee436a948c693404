# starling_embed(TARGET VARIABLE FILE): the bytes of FILE become `const std::string_view VARIABLE` of namespace starling in TARGET.
function(starling_embed target variable file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  set(source ${CMAKE_BINARY_DIR}/embedded/${variable}.cpp)
  file(GENERATE OUTPUT ${source} CONTENT "#include <string_view>
namespace starling {
namespace {
const unsigned char bytes_of_${variable}[] = {${bytes}0};
}
extern const std::string_view ${variable};
const std::string_view ${variable}(reinterpret_cast<const char*>(bytes_of_${variable}), sizeof bytes_of_${variable} - 1);
}
")
  target_sources(${target} PRIVATE ${source})
endfunction()
