// Every way in which the store refuses, with the file and offset that it is about.
//
// `StoreError::code` is either one of `store_errc` (a condition that only we know) or the system's own errno, so a full
// disk stays recognisable as ENOSPC all the way to the operator.
#pragma once

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>
#include <cstdint>
#include <filesystem>
#include <string>

#include "codec/errc.hpp"

namespace deltarelay::relay {

using boost::system::error_code;

enum class store_errc {
  ok = 0,
  file_locked,          ///< another process holds the lock of this directory
  file_is_symlink,      ///< would write outside of the directory
  file_has_hard_links,  ///< somebody else's file would change with ours
  file_read_only,       ///< no permission to write, or a read-only file system
  file_replaced,        ///< the path names another file than the one that is mapped
  file_truncated,       ///< shorter than when it was mapped
  mapped_read_failed,   ///< SIGBUS: a page of a mapping could not be had
  short_write,          ///< the system took no bytes and gave no reason
  unexpected_end,       ///< the file ends before the data that must be there
  ledger_corrupt,       ///< checksum or form of the ledger is wrong
  ledger_foreign,       ///< the ledger belongs to another mesh or node
  state_file_corrupt,   ///< the digest table that the ledger names is damaged
  record_out_of_order,  ///< not the next sequence of its stripe
  record_not_in_log,    ///< dropped, or not there yet
  record_damaged,       ///< a stored record no longer matches its SHA-256
  layout_mismatch,      ///< the image has other tensors than the record or ledger says
  directory_not_empty,  ///< an image is made in an empty directory only
  name_refused,         ///< a file name that could leave the directory or that is ours
  digest_mismatch,      ///< decoded bytes are not what the frame promises
  cancelled,            ///< the caller's progress function said stop
};

[[nodiscard]] const boost::system::error_category& store_category() noexcept;
[[nodiscard]] inline error_code make_error_code(store_errc e) noexcept { return {static_cast<int>(e), store_category()}; }

struct StoreError {
  error_code code;
  std::string what;            ///< the operation and, where known, what to try
  std::filesystem::path path;  ///< may be empty
  std::uint64_t offset = 0;

  /// "PATH: WHAT: SENTENCE (offset N)"
  [[nodiscard]] std::string text() const;
  /// A stable word for status and events: DISK_FULL, READ_ONLY, HARD_LINK, …
  [[nodiscard]] std::string reason_code() const;
  /// True when the same operation may succeed later without anybody changing the set-up (disk full, I/O pressure).
  [[nodiscard]] bool retryable() const noexcept;
};

template <class T>
using StoreResult = boost::system::result<T, StoreError>;

[[nodiscard]] StoreError system_error(int errno_value, std::string what, std::filesystem::path path, std::uint64_t offset = 0);
[[noreturn]] void throw_exception_from_error(const StoreError& error, const boost::source_location& loc);

}  // namespace deltarelay::relay

template <>
struct boost::system::is_error_code_enum<deltarelay::relay::store_errc> : std::true_type {};
