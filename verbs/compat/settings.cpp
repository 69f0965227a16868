#include "verbs/compat/settings.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace iwarp::compat {
namespace {

std::string_view value_of(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : value;
}

void complain(settings& s, const char* name, std::string_view value, const char* wanted) {
  if (!s.problem.empty()) return;
  s.problem = std::string(name) + "=" + std::string(value) + " is not understood: " + wanted + " is possible";
}

void read_switch(settings& s, const char* name, bool& into) {
  const auto value = value_of(name);
  if (value == "on" || value == "off") {
    into = value == "on";
  } else if (!value.empty()) {
    complain(s, name, value, "on or off");
  }
}

}  // namespace

settings read_settings() {
  settings s;
  for (auto rest = value_of(addresses_variable); !rest.empty();) {
    const auto comma = rest.find(',');
    const auto one = rest.substr(0, comma);
    if (!one.empty()) s.addresses.emplace_back(one);
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  read_switch(s, crc_variable, s.crc);
  read_switch(s, markers_variable, s.markers);
  if (const auto value = value_of(revision_variable); value == "1" || value == "2") {
    s.mpa_revision = value == "1" ? 1 : 2;
  } else if (!value.empty()) {
    complain(s, revision_variable, value, "1 or 2");
  }
  if (const auto value = value_of(shortage_variable); value == "terminate") {
    s.shortage = verbs::no_receive::terminate;
  } else if (!value.empty() && value != "hold") {
    complain(s, shortage_variable, value, "hold or terminate");
  }
  if (const auto value = value_of(domains_variable); !value.empty()) {
    unsigned number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error == std::errc{} && end == value.data() + value.size() && number >= 1 && number <= 64) {
      s.domains = number;
    } else {
      complain(s, domains_variable, value, "1 to 64");
    }
  }
  return s;
}

}  // namespace iwarp::compat
