#include "tools/copy/sha256.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include "tools/common/failure.hpp"

namespace iwarp::tools::copy {
namespace {

void check(int done) {
  if (done != 1) throw failure("OpenSSL cannot compute SHA-256");
}

}  // namespace

void sha256::release::operator()(evp_md_ctx_st* context) const noexcept { EVP_MD_CTX_free(context); }

sha256::sha256() : context_(EVP_MD_CTX_new()) {
  check(context_ != nullptr ? EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) : 0);
}

void sha256::add(const_bytes octets) { check(EVP_DigestUpdate(context_.get(), octets.data(), octets.size())); }

sha256_digest sha256::finish() {
  sha256_digest digest;
  check(EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr));
  return digest;
}

std::string hex(const sha256_digest& digest) {
  std::string out;
  for (const std::byte octet : digest) out += fmt::format("{:02x}", std::to_integer<unsigned>(octet));
  return out;
}

}  // namespace iwarp::tools::copy
