#include "verbs/memory.hpp"

#include <limits>

#include "verbs/detail/context_state.hpp"
#include "verbs/detail/mapped_memory.hpp"
#include "verbs/error.hpp"

namespace iwarp::verbs {

protection_domain protection_domain::create(const context& where) {
  return protection_domain{
      std::make_shared<detail::protection_domain_state>(detail::protection_domain_state{where.state()})};
}

result<memory_region> memory_region::make(const protection_domain& pd, mutable_bytes memory, access rights) {
  if (has(rights, access::remote_write) && !has(rights, access::local_write)) return fail(errc::invalid_access);
  if (!detail::is_mapped(memory, has(rights, access::local_write))) return fail(errc::invalid_memory);
  IWARP_TRY(detail::region * made, pd.state()->context->regions().insert(memory, rights, pd.state().get()));
  memory_region region;
  region.pd_ = pd.state();
  region.region_ = made;
  region.memory_ = memory;
  region.rights_ = rights;
  region.key_ = stag{made->key.load()};
  return region;
}

result<memory_region> memory_region::create(const protection_domain& pd, mutable_bytes memory, access rights) {
  return make(pd, memory, rights);
}

result<memory_region> memory_region::create_read_only(const protection_domain& pd, const_bytes memory, access rights) {
  if (has(rights, access::local_write) || has(rights, access::remote_write)) return fail(errc::invalid_access);
  // Never written through: the rights are checked on every access.
  return make(pd, {const_cast<std::byte*>(memory.data()), memory.size()}, rights);
}

memory_region::memory_region(memory_region&& other) noexcept
    : pd_(std::move(other.pd_)),
      region_(std::exchange(other.region_, nullptr)),
      memory_(std::exchange(other.memory_, {})),
      rights_(other.rights_),
      key_(std::exchange(other.key_, {})) {}

memory_region& memory_region::operator=(memory_region&& other) noexcept {
  memory_region old(std::move(*this));
  pd_ = std::move(other.pd_);
  region_ = std::exchange(other.region_, nullptr);
  memory_ = std::exchange(other.memory_, {});
  rights_ = other.rights_;
  key_ = std::exchange(other.key_, {});
  return *this;
}

memory_region::~memory_region() {
  if (region_ != nullptr) pd_->context->remove_region(*region_);
}

remote_buffer memory_region::remote(std::uint64_t at) const noexcept {
  const std::uint64_t base = has(rights_, access::zero_based) ? 0 : reinterpret_cast<std::uintptr_t>(memory_.data());
  return {key_, base + at};
}

sge memory_region::element() const noexcept {
  constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
  return {memory_.data(), static_cast<std::uint32_t>(std::min(memory_.size(), most)), key_};
}

bool memory_region::valid() const noexcept { return region_ != nullptr && region_->valid.load(); }

result<stag> memory_region::revalidate() {
  if (region_ == nullptr) return fail(errc::wrong_state);
  IWARP_TRY(key_, pd_->context->revalidate(*region_));
  return key_;
}

}  // namespace iwarp::verbs
