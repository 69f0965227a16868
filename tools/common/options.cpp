#include "tools/common/options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <iostream>
#include <limits>
#include <string_view>

#include "tools/common/failure.hpp"

namespace iwarp::tools {
namespace {

std::optional<std::uint64_t> parse_number(std::string_view text, bool units) {
  std::uint64_t factor = 1;
  if (units && !text.empty()) {
    switch (text.back()) {
      case 'K':
      case 'k':
        factor = std::uint64_t{1} << 10;
        break;
      case 'M':
      case 'm':
        factor = std::uint64_t{1} << 20;
        break;
      case 'G':
      case 'g':
        factor = std::uint64_t{1} << 30;
        break;
      default:
        break;
    }
    if (factor != 1) text.remove_suffix(1);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  if (value > std::numeric_limits<std::uint64_t>::max() / factor) return std::nullopt;
  return value * factor;
}

}  // namespace

void prepare(CLI::App& app, const std::string& examples) {
  app.set_version_flag("--version", app.get_name() + " " IWARP_VERSION, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  // parse() asks for one, so that an unknown option is named first.
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(34);
  for (CLI::App* command : app.get_subcommands({})) {
    command->set_help_flag("-h,--help", "Print this help and exit");
    command->get_formatter()->column_width(34);
  }
  const std::string codes =
      "\nExit codes: 0 success, 1 failure (one line on stderr says what and why), 2 wrong arguments.";
  if (app.get_subcommands({}).empty()) {
    app.footer("Examples:\n" + examples + codes);
    return;
  }
  app.footer(
      "ADDR is a host name, an IPv4 or an IPv6 address; with a port behind it an IPv6 address is in brackets:\n"
      "[::1]:7174. `" +
      app.get_name() + " COMMAND --help` lists the options of a command.\n\nExamples:\n" + examples + codes);
}

std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return app.exit(problem, std::cout, std::cerr);
    std::string text = problem.what();
    if (const auto line_end = text.find('\n'); line_end != std::string::npos) text.resize(line_end);
    complain(text + " (see " + app.get_name() + " --help)");
    return 2;
  }
  if (app.get_subcommands().empty() && !app.get_subcommands({}).empty()) {
    std::string names;
    for (const CLI::App* command : app.get_subcommands({})) names += (names.empty() ? "" : ", ") + command->get_name();
    complain(fmt::format("a command is missing: one of {} (see {} --help)", names, app.get_name()));
    return 2;
  }
  return std::nullopt;
}

CLI::Option* add_number(CLI::App& app, const std::string& name, std::uint64_t& target, std::uint64_t low,
                        std::uint64_t high, const std::string& help, bool units) {
  const std::string shown = name.substr(name.rfind(',') + 1);
  const auto take = [&target, low, high, units, shown](const std::string& text) {
    const auto value = parse_number(text, units);
    if (!value || *value < low || *value > high)
      throw CLI::ValidationError(shown, fmt::format("expected a number from {} to {}{}, got \"{}\"", low, high,
                                                    units ? " (K, M, G allowed behind it)" : "", text));
    target = *value;
  };
  return app.add_option_function<std::string>(name, take, help)
      ->type_name(units ? "SIZE" : "N")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CLI::Option* add_on_off(CLI::App& app, const std::string& name, bool& target, const std::string& help) {
  const auto take = [&target, name](const std::string& text) {
    if (text != "on" && text != "off")
      throw CLI::ValidationError(name, fmt::format("expected on or off, got \"{}\"", text));
    target = text == "on";
  };
  return app.add_option_function<std::string>(name, take, help)
      ->type_name("on|off")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CLI::Option* add_address(CLI::App& app, const std::string& name, tcp_glue::host_port& target,
                         std::uint16_t default_port, const std::string& help) {
  const auto take = [&target, name, default_port](const std::string& text) {
    auto parsed = tcp_glue::parse_host_port(text, default_port);
    if (!parsed) throw CLI::ValidationError(name, fmt::format("\"{}\": {}", text, describe(parsed.error())));
    target = *std::move(parsed);
  };
  return app.add_option_function<std::string>(name, take, help)
      ->type_name(name.starts_with("-") ? "ADDR[:PORT]" : "[:PORT]")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

}  // namespace iwarp::tools
