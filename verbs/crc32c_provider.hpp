// Public API.
// CRC32c by way of libcrypto: a built-in OpenSSL 3 provider with one digest, "CRC32C", over mpa::crc32c. libcrypto 3.0
// has none of its own. For code written to EVP; the data path calls mpa::crc32c, since an EVP digest costs some 200 ns.
// Threading: a value type; what it loads may be used from any thread, as OpenSSL says.  Time: none.  I/O: none.
#pragma once

#include "base/result.hpp"

#include <memory>

// As <openssl/types.h> has them, so that including this header does not include OpenSSL's.
typedef struct ossl_lib_ctx_st OSSL_LIB_CTX;
typedef struct ossl_provider_st OSSL_PROVIDER;

namespace iwarp::verbs {

/// Keeps the provider loaded. While one of these lives, `EVP_MD_fetch(library, "CRC32C", nullptr)` answers a digest of
/// four octets, **most significant octet first**: "123456789" gives E3 06 92 83. (The CRC field of an FPDU has the same
/// value least significant octet first, RFC 5044 s4.4.) An EVP_MD fetched before this object goes stays usable.
class crc32c_provider {
 public:
  /// The provider's name, and the value of the property "provider" of its digest.
  static constexpr const char* name = "iwarp";

  /// Loads the provider into `library`, which must outlive the result; nullptr is OpenSSL's default library context,
  /// whose other algorithms stay available. May be called any number of times.
  /// Errors: std::errc::not_supported when OpenSSL refuses (its error queue says why).
  static result<crc32c_provider> load(OSSL_LIB_CTX* library = nullptr) noexcept;

 private:
  struct unload {
    void operator()(OSSL_PROVIDER* provider) const noexcept;
  };
  explicit crc32c_provider(OSSL_PROVIDER* provider) noexcept : provider_(provider) {}

  std::unique_ptr<OSSL_PROVIDER, unload> provider_;
};

}  // namespace iwarp::verbs
