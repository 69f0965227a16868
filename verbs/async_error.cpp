#include "verbs/async_error.hpp"

#include <map>
#include <mutex>
#include <string>

namespace iwarp::verbs {
namespace {

class status_category_type final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "iwarp.completion"; }
  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<status>(value)) {
      case status::success:
        return "the request was carried out";
      case status::flushed:
        return "the connection ended before the request was carried out";
      case status::local_length:
        return "a message was longer than the receive posted for it";
      case status::local_protection:
        return "an element names memory that is not registered, lacks the right, or is out of bounds";
      case status::local_qp_operation:
        return "the request cannot be carried out on this queue pair";
      case status::remote_access:
        return "the peer refused access to its memory";
      case status::remote_operation:
        return "the peer could not carry the request out";
      case status::remote_invalid_request:
        return "the peer found the request invalid";
      case status::bad_response:
        return "the peer's Read Response did not match the Read Request";
    }
    return "unknown status " + std::to_string(value);
  }
};

/// A std category under boost::system's interface.
class bridged_category final : public boost::system::error_category {
 public:
  explicit bridged_category(const std::error_category& inner) noexcept : inner_(inner) {}
  [[nodiscard]] const std::error_category& inner() const noexcept { return inner_; }

  [[nodiscard]] const char* name() const noexcept override { return inner_.name(); }
  [[nodiscard]] std::string message(int value) const override { return inner_.message(value); }
  [[nodiscard]] boost::system::error_condition default_error_condition(int value) const noexcept override {
    const auto condition = inner_.default_error_condition(value);
    if (condition.category() == std::generic_category()) {
      return {condition.value(), boost::system::generic_category()};
    }
    return {value, *this};
  }

 private:
  const std::error_category& inner_;
};

/// One bridge per category and process: boost::system compares categories by address. Never destroyed, since error
/// codes may be looked at while the process ends.
const bridged_category& bridge_to(const std::error_category& inner) {
  static std::mutex& mutex = *new std::mutex;
  static auto& bridges = *new std::map<const std::error_category*, bridged_category>;
  const std::lock_guard lock(mutex);
  return bridges.try_emplace(&inner, inner).first->second;
}

/// What boost::system makes of its own category when one of its codes is converted to a std::error_code.
const std::error_category& as_std(const boost::system::error_category& category) { return category; }

}  // namespace

const std::error_category& status_category() noexcept {
  static const status_category_type category;
  return category;
}

boost::system::error_code to_asio(const std::error_code& error) {
  if (!error) return {};
  const auto& category = error.category();
  if (category == std::system_category() || category == as_std(boost::system::system_category())) {
    return {error.value(), boost::system::system_category()};
  }
  if (category == std::generic_category() || category == as_std(boost::system::generic_category())) {
    return {error.value(), boost::system::generic_category()};
  }
  return {error.value(), bridge_to(category)};
}

std::error_code to_std(const boost::system::error_code& error) {
  if (!error) return {};
  const auto& category = error.category();
  if (const auto* bridge = dynamic_cast<const bridged_category*>(&category)) return {error.value(), bridge->inner()};
  if (category == boost::system::system_category()) return {error.value(), std::system_category()};
  if (category == boost::system::generic_category()) return {error.value(), std::generic_category()};
  return error;
}

}  // namespace iwarp::verbs
