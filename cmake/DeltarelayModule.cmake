# Helpers that give every target of ours the same language, warnings and layout.
include_guard()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# Assertions guard invariants of a system that must never write wrong weights: they stay on in every build.
foreach(config RELEASE RELWITHDEBINFO MINSIZEREL)
  string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_${config} "${CMAKE_CXX_FLAGS_${config}}")
endforeach()

find_program(DELTARELAY_CCACHE ccache)
if(DELTARELAY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${DELTARELAY_CCACHE})
endif()

add_library(deltarelay_options INTERFACE)
target_include_directories(deltarelay_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_features(deltarelay_options INTERFACE cxx_std_20)
target_compile_options(deltarelay_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
if(DELTARELAY_SANITIZE)
  target_compile_options(deltarelay_options INTERFACE
    -fsanitize=${DELTARELAY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(deltarelay_options INTERFACE -fsanitize=${DELTARELAY_SANITIZE})
  # Asio uses fences, which g++ warns that ThreadSanitizer does not see; with -Werror nothing that includes Asio would build.
  if(DELTARELAY_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(deltarelay_options INTERFACE -Wno-tsan)
  endif()
endif()

# deltarelay_module(NAME SOURCES a.cpp ... [DEPS deltarelay::x Boost::y ...])
# A static library `deltarelay_NAME`, with the alias `deltarelay::NAME`.
function(deltarelay_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(deltarelay_${name} STATIC ${ARG_SOURCES})
  add_library(deltarelay::${name} ALIAS deltarelay_${name})
  target_link_libraries(deltarelay_${name} PUBLIC ${ARG_DEPS} deltarelay_options)
endfunction()

# deltarelay_program(NAME SOURCES main.cpp ... [DEPS ...])
function(deltarelay_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} deltarelay_options)
endfunction()

# deltarelay_test(NAME SOURCES a_test.cpp ... [DEPS ...] [TIMEOUT seconds])
# One doctest program, registered with CTest. tests/support/doctest_main.cpp brings main().
function(deltarelay_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(test_${name} ${PROJECT_SOURCE_DIR}/tests/support/doctest_main.cpp ${ARG_SOURCES})
  # A test program is read by the compiler far longer than it runs: what it tests is optimised, it is not.
  target_compile_options(test_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_link_libraries(test_${name} PRIVATE ${ARG_DEPS} doctest::doctest deltarelay_options)
  add_test(NAME ${name} COMMAND test_${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()
