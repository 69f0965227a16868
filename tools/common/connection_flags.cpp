#include "tools/common/connection_flags.hpp"

#include <fmt/format.h>

#include "tools/common/options.hpp"

namespace iwarp::tools {

void connection_flags::add_to_client(CLI::App& app) {
  add_on_off(app, "--crc", crc, "Ask for CRC32c; it is in force when either side asks. Default: on");
  const auto take = [this](const std::string& text) {
    if (text != "on" && text != "off" && text != "prefer")
      throw CLI::ValidationError("--markers", fmt::format("expected on, off or prefer, got \"{}\"", text));
    markers = text != "off";
    markers_or_none = text == "prefer";
  };
  app.add_option_function<std::string>(
         "--markers", take,
         "Ask the peer to insert MPA markers; prefer: connect without them when it refuses, "
         "as Linux siw does. Default: off")
      ->type_name("on|off|prefer")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_number(app, "--mpa-rev", revision, 1, 2, "MPA revision to begin with: 1 or 2. Default: 2");
}

void connection_flags::add_to_server(CLI::App& app) {
  crc = false;
  add_on_off(app, "--crc", crc, "on: CRC32c with every client; off: with those that ask for it. Default: off");
  add_on_off(app, "--markers", markers, "Ask every client to insert MPA markers. Default: off");
}

void connection_flags::apply(verbs::connection_options& options) const {
  options.crc = crc;
  options.markers = markers;
}
void connection_flags::apply(verbs::connect_options& options) const {
  apply(static_cast<verbs::connection_options&>(options));
  options.mpa_revision = static_cast<std::uint8_t>(revision);
  options.fall_back_without_markers = markers_or_none;
}

std::string describe_agreement(const verbs::connection_event& established) {
  return fmt::format("crc {}, markers {}, MPA rev {}", established.crc ? "on" : "off",
                     established.markers ? "on" : "off", established.mpa_revision);
}

}  // namespace iwarp::tools
