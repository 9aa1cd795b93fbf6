#pragma once

namespace bouquet::bench {

/// The commit that this program was built from, with "-changed" when files differed from it;
/// "unknown" outside a repository. Its definition is written at each build (write_commit.cmake).
const char* BuildCommit();

}  // namespace bouquet::bench
