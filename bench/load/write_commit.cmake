# Writes OUTPUT, the definition of BuildCommit, when the commit has changed:
#   cmake -D SOURCE=dir -D OUTPUT=file -P write_commit.cmake
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git rev-parse HEAD WORKING_DIRECTORY "${SOURCE}"
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
if(failed)
  set(commit unknown)
else()
  execute_process(COMMAND git status --porcelain --untracked-files=no WORKING_DIRECTORY "${SOURCE}"
    OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    string(APPEND commit -changed)
  endif()
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT
"#include \"bench/load/commit.h\"

namespace bouquet::bench {
const char* BuildCommit() { return \"@commit@\"; }
}  // namespace bouquet::bench
")
