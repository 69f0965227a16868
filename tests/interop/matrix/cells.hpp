// Part of the interop matrix.
// The groups of cells. `ours` is this project's stack, `peer` the other end (siw, or this stack again).
// Threading: one thread.  Time: every wait has a limit.  I/O: the control connections, stdout.
#pragma once

#include "tests/interop/matrix/party.hpp"
#include "tests/interop/matrix/report.hpp"

namespace iwarp::interop {

/// Every operation, size, number of elements and queue depth, with data checked.
/// `quick`: a part of them, for a test of the matrix itself.
void transfer_cells(party& ours, party& peer, report& out, bool quick);
/// Read depths: as many Reads outstanding as were agreed on, and more posted than that.
void depth_cells(party& ours, party& peer, report& out);
/// What the wire must not do: bad keys, bounds, rights, lengths, no receive.
void error_cells(party& ours, party& peer, report& out);
/// Requests, rejections, private data, closing and aborting in each state.
void connection_cells(party& ours, party& peer, report& out);

inline std::string arrow(const party& from, const party& to) { return from.name() + "->" + to.name(); }

}  // namespace iwarp::interop
