// Internal to verbs.
// Whether memory that is to be registered exists and may be written: a peer's Write must not crash the process.
// Threading: free function.  Time: none.  I/O: reads /proc/self/maps.
#pragma once

#include "base/bytes.hpp"

namespace iwarp::verbs::detail {

/// True when every octet is mapped readable, and writable if `writable`. Empty memory always is. Where the system does
/// not tell (no /proc), true.
[[nodiscard]] bool is_mapped(const_bytes memory, bool writable);

}  // namespace iwarp::verbs::detail
