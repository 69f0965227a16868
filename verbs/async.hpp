// Public API.
// Asio-style operations: connections and listeners with completion tokens. Everything else of the native API is
// verbs/verbs.hpp.
// Threading: as Asio's sockets.  Time: none.  I/O: see the classes.
#pragma once

#include "verbs/async_connection.hpp"
#include "verbs/async_error.hpp"
#include "verbs/async_listener.hpp"
