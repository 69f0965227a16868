// Part of the programs.
// Command lines: options that all programs spell the same way, and one clear line for what is wrong with them.
// Threading: free functions.  Time: none.  I/O: stdout for --help and --version, stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "tcp_glue/endpoint.hpp"

namespace iwarp::tools {

/// Adds --version, and a description of exit codes below --help.
void prepare(CLI::App& app, const std::string& examples);

/// Parses. A value: exit with it (--help, --version: 0; wrong arguments, told in one line on stderr: 2).
std::optional<int> parse(CLI::App& app, int argc, char** argv);

/// A whole number of `low`..`high`; with `units`, a K, M or G behind it multiplies by 1024, 1024^2, 1024^3.
CLI::Option* add_number(CLI::App& app, const std::string& name, std::uint64_t& target, std::uint64_t low,
                        std::uint64_t high, const std::string& help, bool units = false);
CLI::Option* add_on_off(CLI::App& app, const std::string& name, bool& target, const std::string& help);
/// ADDR[:PORT].
CLI::Option* add_address(CLI::App& app, const std::string& name, tcp_glue::host_port& target,
                         std::uint16_t default_port, const std::string& help);

}  // namespace iwarp::tools
