#include "verbs/crc32c_provider.hpp"

#include "base/bytes.hpp"
#include "mpa/crc32c.hpp"

#include <openssl/core.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/params.h>
#include <openssl/provider.h>

#include <array>
#include <cstdint>
#include <new>

namespace iwarp::verbs {
namespace {

constexpr std::size_t digest_size = 4;
constexpr int ok = 1;
constexpr int failed = 0;

/// What one EVP_MD_CTX holds: the finished CRC of everything so far, so that dup is a copy and final changes nothing.
struct digest_context {
  std::uint32_t crc = 0;
};

digest_context& self(void* context) noexcept { return *static_cast<digest_context*>(context); }

int write_digest(std::uint32_t crc, unsigned char* out, std::size_t* written, std::size_t room) noexcept {
  if (room < digest_size) return failed;
  store_be(mutable_bytes{reinterpret_cast<std::byte*>(out), digest_size}.first<digest_size>(), crc);
  *written = digest_size;
  return ok;
}

// The digest: the functions of provider-digest(7) -----------------------------------------------------------------

void* digest_new(void* /*provider*/) noexcept { return new (std::nothrow) digest_context; }

void digest_free(void* context) noexcept { delete static_cast<digest_context*>(context); }

void* digest_dup(void* context) noexcept { return new (std::nothrow) digest_context(self(context)); }

int digest_init(void* context, const OSSL_PARAM* /*params*/) noexcept {
  self(context) = {};
  return ok;
}

int digest_update(void* context, const unsigned char* in, std::size_t size) noexcept {
  self(context).crc = mpa::crc32c(as_const_bytes(in, size), self(context).crc);
  return ok;
}

int digest_final(void* context, unsigned char* out, std::size_t* written, std::size_t room) noexcept {
  return write_digest(self(context).crc, out, written, room);
}

int digest_at_once(void* /*provider*/, const unsigned char* in, std::size_t size, unsigned char* out,
                   std::size_t* written, std::size_t room) noexcept {
  return write_digest(mpa::crc32c(as_const_bytes(in, size)), out, written, room);
}

int digest_get_params(OSSL_PARAM params[]) noexcept {
  OSSL_PARAM* const block = OSSL_PARAM_locate(params, OSSL_DIGEST_PARAM_BLOCK_SIZE);
  if (block != nullptr && OSSL_PARAM_set_size_t(block, 1) == 0) return failed;
  OSSL_PARAM* const size = OSSL_PARAM_locate(params, OSSL_DIGEST_PARAM_SIZE);
  if (size != nullptr && OSSL_PARAM_set_size_t(size, digest_size) == 0) return failed;
  return ok;
}

const OSSL_PARAM* digest_gettable_params(void* /*provider*/) noexcept {
  static const std::array<OSSL_PARAM, 3> params = {{
      {OSSL_DIGEST_PARAM_BLOCK_SIZE, OSSL_PARAM_UNSIGNED_INTEGER, nullptr, sizeof(std::size_t), OSSL_PARAM_UNMODIFIED},
      {OSSL_DIGEST_PARAM_SIZE, OSSL_PARAM_UNSIGNED_INTEGER, nullptr, sizeof(std::size_t), OSSL_PARAM_UNMODIFIED},
      {nullptr, 0, nullptr, 0, 0},
  }};
  return params.data();
}

/// One row of a dispatch table. OpenSSL casts the function back to the type that `id` stands for.
template <class Function>
OSSL_DISPATCH entry(int id, Function* function) noexcept {
  return {id, reinterpret_cast<void (*)()>(function)};
}

// The provider: the functions of provider-base(7) ------------------------------------------------------------------

const OSSL_ALGORITHM* query_operation(void* /*provider*/, int operation, int* no_cache) noexcept {
  static const std::array<OSSL_DISPATCH, 10> digest = {
      entry(OSSL_FUNC_DIGEST_NEWCTX, digest_new),
      entry(OSSL_FUNC_DIGEST_FREECTX, digest_free),
      entry(OSSL_FUNC_DIGEST_DUPCTX, digest_dup),
      entry(OSSL_FUNC_DIGEST_INIT, digest_init),
      entry(OSSL_FUNC_DIGEST_UPDATE, digest_update),
      entry(OSSL_FUNC_DIGEST_FINAL, digest_final),
      entry(OSSL_FUNC_DIGEST_DIGEST, digest_at_once),
      entry(OSSL_FUNC_DIGEST_GET_PARAMS, digest_get_params),
      entry(OSSL_FUNC_DIGEST_GETTABLE_PARAMS, digest_gettable_params),
      OSSL_DISPATCH{0, nullptr},
  };
  static const std::array<OSSL_ALGORITHM, 2> digests = {{
      {"CRC32C:CRC-32C", "provider=iwarp", digest.data(), "CRC32c (Castagnoli), RFC 5044 s4.4"},
      {nullptr, nullptr, nullptr, nullptr},
  }};
  *no_cache = 0;
  return operation == OSSL_OP_DIGEST ? digests.data() : nullptr;
}

int provider_init(const OSSL_CORE_HANDLE* handle, const OSSL_DISPATCH* /*core*/, const OSSL_DISPATCH** out,
                  void** provider) noexcept {
  static const std::array<OSSL_DISPATCH, 2> functions = {
      entry(OSSL_FUNC_PROVIDER_QUERY_OPERATION, query_operation),
      OSSL_DISPATCH{0, nullptr},
  };
  *out = functions.data();
  *provider = const_cast<OSSL_CORE_HANDLE*>(handle);  // nothing of our own to keep, but it must not be null
  return ok;
}

}  // namespace

result<crc32c_provider> crc32c_provider::load(OSSL_LIB_CTX* library) noexcept {
  // A second registration under the name fails when the first is there: loading then finds that one.
  if (OSSL_PROVIDER_available(library, name) == 0) OSSL_PROVIDER_add_builtin(library, name, provider_init);
  // retain_fallbacks: else the first provider loaded by hand would make OpenSSL's default provider disappear.
  OSSL_PROVIDER* const provider = OSSL_PROVIDER_try_load(library, name, 1);
  if (provider == nullptr) return fail(std::make_error_code(std::errc::not_supported));
  return crc32c_provider(provider);
}

void crc32c_provider::unload::operator()(OSSL_PROVIDER* provider) const noexcept { OSSL_PROVIDER_unload(provider); }

}  // namespace iwarp::verbs
