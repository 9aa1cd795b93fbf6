# Warnings are errors in our own code; other people's headers are SYSTEM. clang, used for fuzzing only, warns about
# other things than g++ does: there they are not errors.
# g++ 12 takes the frames of coroutines for mismatched allocations when sanitizers are on.
add_library(bouquet_warnings INTERFACE)
target_compile_options(bouquet_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Wno-missing-field-initializers -Wno-mismatched-new-delete $<$<CXX_COMPILER_ID:GNU>:-Werror>>)
