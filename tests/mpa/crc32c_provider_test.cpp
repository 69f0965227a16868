#include "verbs/crc32c_provider.hpp"

#include "mpa/crc32c.hpp"
#include "tests/support/hex.hpp"
#include "tests/support/random.hpp"

#include <gtest/gtest.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace iwarp::verbs {
namespace {

using test_support::random_source;
using test_support::to_hex;

using library_context = std::unique_ptr<OSSL_LIB_CTX, decltype(&OSSL_LIB_CTX_free)>;
using digest_type = std::unique_ptr<EVP_MD, decltype(&EVP_MD_free)>;
using digest_context = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

library_context new_library() { return {OSSL_LIB_CTX_new(), OSSL_LIB_CTX_free}; }
digest_type fetch(OSSL_LIB_CTX* library) { return {EVP_MD_fetch(library, "CRC32C", nullptr), EVP_MD_free}; }
digest_context new_context() { return {EVP_MD_CTX_new(), EVP_MD_CTX_free}; }

std::string finish(EVP_MD_CTX* context) {
  std::array<std::byte, EVP_MAX_MD_SIZE> out{};
  unsigned size = 0;
  EXPECT_EQ(EVP_DigestFinal_ex(context, reinterpret_cast<unsigned char*>(out.data()), &size), 1);
  return to_hex(const_bytes{out}.first(size));
}

std::string at_once(const EVP_MD* digest, const_bytes data) {
  std::array<std::byte, EVP_MAX_MD_SIZE> out{};
  unsigned size = 0;
  EXPECT_EQ(EVP_Digest(data.data(), data.size(), reinterpret_cast<unsigned char*>(out.data()), &size, digest, nullptr),
            1);
  return to_hex(const_bytes{out}.first(size));
}

std::vector<std::byte> text(const std::string& s) {
  const const_bytes view = as_const_bytes(s.data(), s.size());
  return {view.begin(), view.end()};
}

class Crc32cProvider : public testing::Test {
 protected:
  void SetUp() override {
    auto loaded = crc32c_provider::load(library_.get());
    ASSERT_TRUE(loaded) << loaded.error().message();
    provider_ = std::make_unique<crc32c_provider>(std::move(*loaded));
    digest_ = fetch(library_.get());
    ASSERT_NE(digest_, nullptr);
  }

  library_context library_ = new_library();
  std::unique_ptr<crc32c_provider> provider_;
  digest_type digest_{nullptr, EVP_MD_free};
};

TEST_F(Crc32cProvider, DescribesItsDigest) {
  EXPECT_EQ(EVP_MD_get_size(digest_.get()), 4);
  EXPECT_EQ(EVP_MD_get_block_size(digest_.get()), 1);
  EXPECT_STREQ(EVP_MD_get0_name(digest_.get()), "CRC32C");
}

// MPA-29, most significant octet first.
TEST_F(Crc32cProvider, GivesTheKnownValues) {
  std::vector<std::byte> rising(32), falling(32);
  for (std::size_t i = 0; i < 32; ++i) {
    rising[i] = static_cast<std::byte>(i);
    falling[i] = static_cast<std::byte>(31 - i);
  }
  EXPECT_EQ(at_once(digest_.get(), {}), "00000000");
  EXPECT_EQ(at_once(digest_.get(), text("a")), "c1d04330");
  EXPECT_EQ(at_once(digest_.get(), text("123456789")), "e3069283");
  EXPECT_EQ(at_once(digest_.get(), std::vector<std::byte>(32)), "8a9136aa");
  EXPECT_EQ(at_once(digest_.get(), std::vector<std::byte>(32, std::byte{0xFF})), "62a8ab43");
  EXPECT_EQ(at_once(digest_.get(), rising), "46dd794e");
  EXPECT_EQ(at_once(digest_.get(), falling), "113fdb5c");
}

TEST_F(Crc32cProvider, UpdatesInAnyPieces) {
  const std::vector<std::byte> data = random_source(1).octets(3000);
  const std::string whole = at_once(digest_.get(), data);
  const digest_context context = new_context();
  for (std::size_t step : {1u, 7u, 256u, 1000u, 3000u}) {
    ASSERT_EQ(EVP_DigestInit_ex2(context.get(), digest_.get(), nullptr), 1);
    for (std::size_t at = 0; at < data.size(); at += step) {
      ASSERT_EQ(EVP_DigestUpdate(context.get(), data.data() + at, std::min(step, data.size() - at)), 1);
    }
    EXPECT_EQ(finish(context.get()), whole) << step;
  }
}

TEST_F(Crc32cProvider, AContextCanBeCopiedAndStartedAgain) {
  const digest_context context = new_context(), copy = new_context();
  ASSERT_EQ(EVP_DigestInit_ex2(context.get(), digest_.get(), nullptr), 1);
  ASSERT_EQ(EVP_DigestUpdate(context.get(), "12345", 5), 1);
  ASSERT_EQ(EVP_MD_CTX_copy_ex(copy.get(), context.get()), 1);
  ASSERT_EQ(EVP_DigestUpdate(context.get(), "xxxx", 4), 1);
  ASSERT_EQ(EVP_DigestUpdate(copy.get(), "6789", 4), 1);
  EXPECT_EQ(finish(copy.get()), "e3069283");
  EXPECT_NE(finish(context.get()), "e3069283");
  ASSERT_EQ(EVP_DigestInit_ex2(context.get(), digest_.get(), nullptr), 1);
  ASSERT_EQ(EVP_DigestUpdate(context.get(), "a", 1), 1);
  EXPECT_EQ(finish(context.get()), "c1d04330");
}

TEST_F(Crc32cProvider, LoadsAgainAndAFetchedDigestOutlivesIt) {
  auto again = crc32c_provider::load(library_.get());
  ASSERT_TRUE(again);
  provider_.reset();
  EXPECT_NE(fetch(library_.get()), nullptr);
  again = fail(std::make_error_code(std::errc::not_supported));
  EXPECT_EQ(at_once(digest_.get(), text("123456789")), "e3069283");
}

TEST(Crc32cProviderLoading, WithoutItThereIsNoSuchDigest) {
  const library_context library = new_library();
  EXPECT_EQ(fetch(library.get()), nullptr);
}

TEST(Crc32cProviderLoading, TheDefaultContextKeepsItsOtherAlgorithms) {
  auto provider = crc32c_provider::load();
  ASSERT_TRUE(provider);
  const digest_type sha{EVP_MD_fetch(nullptr, "SHA2-256", nullptr), EVP_MD_free};
  EXPECT_NE(sha, nullptr);
  const digest_type crc = fetch(nullptr);
  ASSERT_NE(crc, nullptr);
  EXPECT_EQ(at_once(crc.get(), text("123456789")), "e3069283");
}

}  // namespace
}  // namespace iwarp::verbs
