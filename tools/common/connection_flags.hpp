// Part of the programs.
// What a command line says of every connection: CRC, markers, the MPA revision.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <string>

#include "verbs/queue_pair.hpp"

namespace CLI {
class App;
}

namespace iwarp::tools {

/// --crc, --markers and --mpa-rev.
struct connection_flags {
  bool crc = true;
  bool markers = false;
  bool markers_or_none = false;  ///< clients: without markers rather than not at all
  std::uint64_t revision = 2;

  /// For `connect`: what the client asks for.
  void add_to_client(CLI::App& app);
  /// For `serve`: what is demanded from every client; CRC is off by default, so that the client decides.
  void add_to_server(CLI::App& app);

  void apply(verbs::connection_options& options) const;
  void apply(verbs::connect_options& options) const;
};

/// "crc on, markers off, MPA rev 2", as negotiated.
std::string describe_agreement(const verbs::connection_event& established);

}  // namespace iwarp::tools
