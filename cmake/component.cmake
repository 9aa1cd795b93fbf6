# One function per kind of target. Sources are listed, never globbed; DEPS are ours, LIBS are other people's.
#
#   bouquet_library(model SOURCES model_folder.cc … DEPS base [LIBS …])
#   bouquet_test(model SOURCES model_folder_test.cc … DEPS model [LABELS …])   one binary per component, ctest per case;
#                                                                              the label `threads` puts it under TSan
#   bouquet_bench(tokenizer SOURCES tokenizer_bench.cc DEPS text)              built with BOUQUET_BENCHMARKS
#   bouquet_fuzz(safetensors_fuzz SOURCES … DEPS rose_weights CORPUS dir)      libFuzzer with BOUQUET_FUZZ, replay test else

# What `./dev test` builds under TSan, and what `./dev fuzz` builds and runs (name and corpus of each, one a line).
add_custom_target(threaded_tests)
add_custom_target(fuzzers)
file(WRITE "${PROJECT_BINARY_DIR}/fuzzers.txt" "")

function(bouquet_library name)
  cmake_parse_arguments(A "" "" "SOURCES;DEPS;LIBS;PRIVATE_LIBS" ${ARGN})
  add_library(bouquet_${name} STATIC ${A_SOURCES})
  target_include_directories(bouquet_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  list(TRANSFORM A_DEPS PREPEND bouquet_)
  target_link_libraries(bouquet_${name} PUBLIC ${A_DEPS} ${A_LIBS} PRIVATE bouquet_warnings ${A_PRIVATE_LIBS})
endfunction()

function(bouquet_test name)
  if(NOT BOUQUET_TESTS)
    return()
  endif()
  cmake_parse_arguments(A "" "" "SOURCES;DEPS;LIBS;LABELS" ${ARGN})
  add_executable(${name}_test ${A_SOURCES})
  list(TRANSFORM A_DEPS PREPEND bouquet_)
  target_link_libraries(${name}_test PRIVATE ${A_DEPS} ${A_LIBS} bouquet_testing GTest::gmock_main bouquet_warnings)
  # An empty value would vanish on its way through gtest_discover_tests and shift the others.
  set(properties TIMEOUT 300 FIXTURES_REQUIRED test_data)
  if(A_LABELS)
    list(APPEND properties LABELS "${A_LABELS}")
  endif()
  if(BOUQUET_TEST_ENVIRONMENT)
    list(APPEND properties ENVIRONMENT "${BOUQUET_TEST_ENVIRONMENT}")
  endif()
  gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST PROPERTIES ${properties})
  if(threads IN_LIST A_LABELS)
    add_dependencies(threaded_tests ${name}_test)
  endif()
endfunction()

function(bouquet_bench name)
  if(NOT BOUQUET_BENCHMARKS)
    return()
  endif()
  cmake_parse_arguments(A "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  add_executable(${name}_bench ${A_SOURCES})
  list(TRANSFORM A_DEPS PREPEND bouquet_)
  target_link_libraries(${name}_bench PRIVATE ${A_DEPS} ${A_LIBS} benchmark::benchmark_main bouquet_warnings)
endfunction()

function(bouquet_fuzz name)
  cmake_parse_arguments(A "" "CORPUS" "SOURCES;DEPS;LIBS" ${ARGN})
  list(TRANSFORM A_DEPS PREPEND bouquet_)
  if(BOUQUET_FUZZ)
    add_executable(${name} ${A_SOURCES})
    target_link_libraries(${name} PRIVATE ${A_DEPS} ${A_LIBS} bouquet_warnings)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers ${name})
    file(APPEND "${PROJECT_BINARY_DIR}/fuzzers.txt" "${name} ${CMAKE_CURRENT_SOURCE_DIR}/${A_CORPUS}\n")
  elseif(BOUQUET_TESTS)
    # The same target as an ordinary test: every file of the corpus, and mutations of each from a fixed seed.
    add_executable(${name} ${A_SOURCES} ${PROJECT_SOURCE_DIR}/testing/fuzz_replay_main.cc)
    target_link_libraries(${name} PRIVATE ${A_DEPS} ${A_LIBS} bouquet_warnings)
    add_test(NAME ${name} COMMAND ${name} ${CMAKE_CURRENT_SOURCE_DIR}/${A_CORPUS})
    set_tests_properties(${name} PROPERTIES TIMEOUT 300 LABELS fuzz)
  endif()
endfunction()
