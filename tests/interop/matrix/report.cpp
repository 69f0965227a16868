#include "tests/interop/matrix/report.hpp"

#include <iostream>

namespace iwarp::interop {

std::string cell::name() const {
  std::string all = group + ", " + op + ", " + direction;
  if (!connector.empty()) all += ", " + connector + " connects";
  if (!crc.empty()) all += ", crc " + crc;
  if (size) all += ", " + std::to_string(*size) + " octets";
  if (sges) all += ", " + std::to_string(*sges) + (*sges == 1 ? " sge" : " sges");
  if (depth) all += ", depth " + std::to_string(*depth);
  return all;
}

bool report::run(const cell& which, const std::function<std::string()>& body) {
  if (!wants(which)) return true;
  nlohmann::ordered_json line{{"cell", which.name()},
                              {"group", which.group},
                              {"op", which.op},
                              {"direction", which.direction},
                              {"crc", which.crc}};
  if (!which.connector.empty()) line["connector"] = which.connector;
  if (which.size) line["size"] = *which.size;
  if (which.sges) line["sge"] = *which.sges;
  if (which.depth) line["depth"] = *which.depth;
  line["expected"] = which.expected;
  bool good = true;
  if (!list_) {
    const auto begin = std::chrono::steady_clock::now();
    std::string result = "pass";
    std::string note;
    try {
      note = body();
      ++passed_;
    } catch (const skipped& why) {
      result = "skip";
      note = why.what();
      ++skipped_;
    } catch (const std::exception& problem) {
      result = "fail";
      note = problem.what();
      ++failed_;
      good = false;
    }
    line["result"] = result;
    line["note"] = note;
    line["ms"] = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin).count();
  }
  std::cout << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  return good;
}

int report::finish() {
  const auto took = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin_).count();
  std::cout
      << nlohmann::ordered_json{{"passed", passed_}, {"failed", failed_}, {"skipped", skipped_}, {"ms", took}}.dump()
      << std::endl;
  return failed_ == 0 && (passed_ > 0 || list_) ? 0 : 1;
}

}  // namespace iwarp::interop
