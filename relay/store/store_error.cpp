#include "relay/store/store_error.hpp"

#include <boost/system/system_error.hpp>
#include <boost/throw_exception.hpp>

namespace deltarelay::relay {
namespace {

class StoreCategory final : public boost::system::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "deltarelay.store"; }
  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<store_errc>(value)) {
      case store_errc::ok: return "success";
      case store_errc::corrupt: return "content does not match its checksum";
      case store_errc::out_of_order: return "record does not follow the one before it";
      case store_errc::not_in_log: return "record is not in the log";
      case store_errc::already_locked: return "another process holds the lock; stop it or use another directory";
      case store_errc::symbolic_link: return "symbolic links are not followed; put the file itself there";
      case store_errc::hard_linked: return "the file has other hard links; make a copy of its own (cp --reflink=auto)";
      case store_errc::read_only: return "cannot be written; check owner, mode and mount options";
      case store_errc::replaced:
        return "the file was truncated, removed or replaced while it was in use";
      case store_errc::mapping_fault: return "a mapped page could not be read or written; check disk and file size";
      case store_errc::not_empty: return "the directory is not empty";
      case store_errc::engine_reads:
        return "an engine reads the image and holds deltarelay.lock";
    }
    return "unknown store error";
  }
};

}  // namespace

const boost::system::error_category& store_category() noexcept {
  static const StoreCategory category;
  return category;
}

std::string StoreError::text() const {
  std::string out = what + " " + path;
  if (offset != 0) out += " at " + std::to_string(offset);
  return out + ": " + code.message();
}

StoreError system_error(int error_number, std::string what, std::string path, std::uint64_t offset) {
  return {boost::system::error_code(error_number, boost::system::generic_category()), std::move(what), std::move(path), offset};
}

void throw_exception_from_error(const StoreError& error, const boost::source_location& loc) {
  boost::throw_exception(boost::system::system_error(error.code, error.text()), loc);
}

}  // namespace deltarelay::relay
