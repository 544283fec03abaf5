// What the store could not do, to which file, at which offset: one type for errno, SIGBUS and damaged content.
//
// Layer: relay/store, which knows neither sockets nor the protocol core. Values; thread-safe.
#pragma once

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>
#include <cstdint>
#include <string>

namespace deltarelay::relay {

enum class store_errc {
  ok = 0,
  corrupt,         ///< content that its own checksum refutes
  out_of_order,    ///< a log record that does not follow its predecessor
  not_in_log,      ///< never received, cut off at recovery, or dropped
  already_locked,  ///< another process has the directory
  symbolic_link,   ///< would lead a write out of the directory
  hard_linked,     ///< somebody else has the file too
  read_only,       ///< no permission or no support for a shared writable mapping
  replaced,        ///< the path no longer names the file that is open, or its size changed
  mapping_fault,   ///< SIGBUS: the pages behind a mapping are gone
  not_empty,       ///< a directory that must be empty is not
  engine_reads,    ///< an engine holds the image's lock
};

[[nodiscard]] const boost::system::error_category& store_category() noexcept;
[[nodiscard]] inline boost::system::error_code make_error_code(store_errc e) noexcept {
  return {static_cast<int>(e), store_category()};
}

struct StoreError {
  boost::system::error_code code;
  std::string what;  ///< the act that failed: "write", "lock", …
  std::string path;
  std::uint64_t offset = 0;

  /// "WHAT PATH at OFFSET: SENTENCE"
  [[nodiscard]] std::string text() const;
};

/// errno as a StoreError.
[[nodiscard]] StoreError system_error(int error_number, std::string what, std::string path, std::uint64_t offset = 0);

template <class T>
using StoreResult = boost::system::result<T, StoreError>;

[[noreturn]] void throw_exception_from_error(const StoreError& error, const boost::source_location& loc);

}  // namespace deltarelay::relay

template <>
struct boost::system::is_error_code_enum<deltarelay::relay::store_errc> : std::true_type {};
