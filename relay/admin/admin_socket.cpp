// Why a lock file: between "nobody answers on this socket" and removing it another daemon may have bound it.
#include "relay/admin/admin_socket.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "relay/net/net_error.hpp"

namespace deltarelay::relay::admin {
namespace {

namespace asio = boost::asio;
using asio::local::stream_protocol;

codec::Failure failure(const std::filesystem::path& path, std::string why) {
  codec::Failure failed;
  failed.code = net::net_errc::listen_failed;
  failed.where = path.string();
  failed.why = std::move(why);
  return failed;
}

codec::Failure failure(const std::filesystem::path& path, const char* act, int error) {
  return failure(path, std::string(act) + ": " + std::strerror(error));
}

/// A descriptor that is closed unless it is released.
struct Descriptor {
  int number = -1;
  explicit Descriptor(int fd) : number(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  int release() { return std::exchange(number, -1); }
};

sockaddr_un address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.native().size());
  return address;
}

int connect_error(const std::filesystem::path& path) {
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (probe.number < 0) return errno;
  const sockaddr_un address = address_of(path);
  return ::connect(probe.number, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

/// Makes way for a new socket file, or says why not. REQUIRES the lock.
std::optional<codec::Failure> remove_stale(const std::filesystem::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return std::nullopt;
    return failure(path, "cannot look at it", errno);
  }
  if (!S_ISSOCK(status.st_mode)) return failure(path, "there is a file that is no socket; it was left alone");
  // A refused connection is the one sign that nobody holds the socket: a full queue of a live one says EAGAIN.
  const int error = connect_error(path);
  if (error == ECONNREFUSED) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failure(path, "cannot remove a dead socket", errno);
    return std::nullopt;
  }
  if (error == ENOENT) return std::nullopt;
  if (error == 0 || error == EAGAIN) return failure(path, "another process listens on it");
  return failure(path, "cannot find out whether it is in use", error);
}

}  // namespace

codec::Checked<AdminSocket> AdminSocket::open(asio::any_io_executor executor, const std::filesystem::path& path,
                                              std::uint32_t mode) {
  const std::size_t bytes_max = sizeof(sockaddr_un::sun_path) - 1;
  if (path.empty() || path.native().size() > bytes_max) {
    return failure(path, "a socket's path has 1 to " + std::to_string(bytes_max) + " bytes");
  }
  const std::string lock_path = path.string() + ".lock";
  Descriptor lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock.number < 0) return failure(lock_path, "open", errno);
  if (::flock(lock.number, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return failure(path, "another relayd has it");
    return failure(lock_path, "lock", errno);
  }
  if (auto refused = remove_stale(path)) return *refused;

  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.number < 0) return failure(path, "socket", errno);
  // Before bind, so that the file never has more rights than asked; after it, because bind takes the umask away.
  if (::fchmod(socket.number, mode) != 0) return failure(path, "chmod", errno);
  const sockaddr_un address = address_of(path);
  if (::bind(socket.number, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failure(path, "bind", errno);
  }
  stream_protocol::acceptor acceptor(executor);
  boost::system::error_code failed;
  acceptor.assign(stream_protocol(), socket.number, failed);
  if (failed) {
    ::unlink(path.c_str());
    return failure(path, failed.message());
  }
  socket.release();
  AdminSocket made(std::move(acceptor), path, lock.release());
  if (::chmod(path.c_str(), mode) != 0) return failure(path, "chmod", errno);
  made.acceptor_.listen(asio::socket_base::max_listen_connections, failed);
  if (failed) return failure(path, failed.message());
  return made;
}

AdminSocket::AdminSocket(stream_protocol::acceptor acceptor, std::filesystem::path path, int lock)
    : acceptor_(std::move(acceptor)), path_(std::move(path)), lock_(lock) {
  struct stat status {};
  if (::lstat(path_.c_str(), &status) == 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
}

AdminSocket::AdminSocket(AdminSocket&& other) noexcept
    : acceptor_(std::move(other.acceptor_)),
      path_(std::move(other.path_)),
      lock_(std::exchange(other.lock_, -1)),
      device_(other.device_),
      inode_(other.inode_) {}

AdminSocket::~AdminSocket() {
  close();
}

void AdminSocket::close() {
  if (lock_ < 0) return;
  struct stat status {};
  const bool ours = ::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
  if (ours) ::unlink(path_.c_str());
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  ::close(std::exchange(lock_, -1));
}

}  // namespace deltarelay::relay::admin
