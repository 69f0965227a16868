// Part of iwarp-copy.
// SHA-256 over pieces, by OpenSSL's EVP.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include <memory>
#include <string>

#include "base/bytes.hpp"
#include "tools/copy/protocol.hpp"

struct evp_md_ctx_st;

namespace iwarp::tools::copy {

class sha256 {
 public:
  /// Throws failure when OpenSSL has no SHA-256.
  sha256();
  void add(const_bytes octets);
  /// Call once, at the end.
  sha256_digest finish();

 private:
  struct release {
    void operator()(evp_md_ctx_st* context) const noexcept;
  };
  std::unique_ptr<evp_md_ctx_st, release> context_;
};

std::string hex(const sha256_digest& digest);

}  // namespace iwarp::tools::copy
