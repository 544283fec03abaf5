#include "relay/shell/daemon.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <future>
#include <thread>

#include "codec/checkpoint.hpp"
#include "relay/admin/admin_server.hpp"
#include "relay/shell/admin_api.hpp"
#include "relay/shell/image_mending.hpp"
#include "relay/shell/log_note.hpp"

namespace deltarelay::relay {
namespace {

net::TlsPaths tls_paths(const config::TlsConfig& tls) {
  return {tls.cert, tls.key, tls.ca, tls.crl.value_or(std::filesystem::path())};
}

/// Certificate and content key against config and topology.
void check_identity(Prepared& out) {
  const config::RelaydConfig& config = *out.config;
  const auto add = [&](const std::string& message) { out.findings.add({}, message); };
  auto tls = net::TlsContext::load(tls_paths(config.tls));
  if (!tls)
    add("tls: " + tls.error().text());
  else
    out.tls = std::move(*tls);
  if (out.tls) {
    const net::PeerIdentity& identity = out.tls->identity();
    if (identity.node != config.node)
      add(fmt::format("tls.cert: {} is for node \"{}\", node here is \"{}\"", config.tls.cert.string(), identity.node,
                      config.node));
    if (net::to_string(identity.role) != config::name_of(config.role))
      add(fmt::format("tls.cert: {} is for role {}, role here is {}", config.tls.cert.string(),
                      net::to_string(identity.role), config::name_of(config.role)));
    if (out.plan && identity.mesh != out.plan->mesh())
      add(fmt::format("tls.cert: {} is of mesh \"{}\", the topology is of mesh \"{}\"", config.tls.cert.string(),
                      identity.mesh, out.plan->mesh()));
  }
  auto verifier = codec::ContentVerifier::load(config.content_key.public_key);
  if (!verifier)
    add("content_key.public: " + verifier.error().text());
  else
    out.verifier = std::move(*verifier);
  if (!config.content_key.private_key) return;
  auto signer = codec::ContentSigner::load(*config.content_key.private_key);
  if (!signer) return add("content_key.private: " + signer.error().text());
  const std::string probe = "deltarelay";
  if (out.verifier &&
      !out.verifier->verify(std::as_bytes(std::span(probe)), signer->sign(std::as_bytes(std::span(probe)))))
    return add(fmt::format("content_key.private: {} is not the key that {} verifies",
                           config.content_key.private_key->string(), config.content_key.public_key.string()));
  out.signer = std::move(*signer);
}

void check_image(Prepared& out) {
  const config::RelaydConfig& config = *out.config;
  auto checkpoint = codec::Checkpoint::open(config.image.dir, static_cast<std::uint32_t>(config.image.block_bytes));
  if (checkpoint) return;
  std::error_code error;
  const bool absent =
      !std::filesystem::exists(config.image.dir, error) || checkpoint.error().code == codec::errc::no_checkpoint;
  // A relay without an image gets one; what is there and cannot be read would be in the way of it.
  const bool root = config.role == config::Role::root;
  if (!root && (absent || can_be_mended(config.state_dir, config.image.dir))) return;
  out.findings.add({}, "image.dir: " + checkpoint.error().text() +
                           (root && absent ? "; put the checkpoint there that the fleet shall start from" : ""));
}

HostStoreOptions store_options(const Prepared& prepared) {
  const config::RelaydConfig& config = *prepared.config;
  HostStoreOptions options;
  options.state_dir = config.state_dir;
  options.image_dir = config.image.dir;
  options.node = config.node;
  options.mesh = prepared.tls->mesh_id();
  options.block_bytes = static_cast<std::uint32_t>(config.image.block_bytes);
  options.apply_threads = config.limits.apply_threads != 0 ? config.limits.apply_threads
                                                           : std::max(1u, std::thread::hardware_concurrency());
  options.is_root = config.role == config::Role::root;
  const auto clock = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  options.first_boot = static_cast<std::uint64_t>(std::max<std::int64_t>(clock.count(), 0));
  options.log.cache_bytes_max = config.limits.memory_bytes / 4;
  options.note = log_note;
  return options;
}

spdlog::level::level_enum level_of(config::LogLevel level) {
  switch (level) {
    case config::LogLevel::trace:
      return spdlog::level::trace;
    case config::LogLevel::debug:
      return spdlog::level::debug;
    case config::LogLevel::info:
      return spdlog::level::info;
    case config::LogLevel::warn:
      return spdlog::level::warn;
    case config::LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

void set_up_logging(const config::RelaydConfig& config) {
  spdlog::set_level(level_of(config.log.level));
  // Text of peers and paths is escaped by whoever formats it; the pattern only frames it.
  spdlog::set_pattern(
      config.log.format == config::LogFormat::json
          ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","node":")" + config.node + R"(","message":"%v"})"
          : "time=%Y-%m-%dT%H:%M:%S.%eZ level=%l node=" + config.node + " %v",
      spdlog::pattern_time_type::utc);
  spdlog::flush_on(spdlog::level::info);
}

/// I/O threads that run until the context has nothing left to do.
class IoThreads {
 public:
  IoThreads(boost::asio::io_context& io, unsigned count) : guard_(io.get_executor()) {
    for (unsigned i = 0; i < count; ++i) threads_.emplace_back([&io] { io.run(); });
  }
  ~IoThreads() { join(); }
  void join() {
    guard_.reset();
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }

 private:
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::vector<std::thread> threads_;
};

void reload(Shell& shell, const std::filesystem::path& config_file) {
  const config::LoadedConfig loaded = config::load_relayd_config(config_file);
  if (!loaded.config) {
    spdlog::error("SIGHUP: the configuration is not right, nothing is changed:\n{}", loaded.findings.text());
    return;
  }
  spdlog::set_level(level_of(loaded.config->log.level));
  if (auto reloaded = shell.reload_certificates(); !reloaded)
    spdlog::error("SIGHUP: the old certificates stay: {}", reloaded.error().text());
  else
    spdlog::info("SIGHUP: certificates and log level are read again");
  const config::LoadedTopology topology = config::load_topology(loaded.config->topology);
  if (!topology.plan)
    spdlog::error("SIGHUP: the topology is not right:\n{}", topology.findings.text());
  else if (topology.plan->digest() != shell.parts().plan.digest())
    spdlog::warn("SIGHUP: the topology gives another plan ({} instead of {}); restart relayd to take it",
                 topology.plan->digest(), shell.parts().plan.digest());
}

int complain(const std::string& what, const std::string& why, const std::string& try_next) {
  std::fputs(fmt::format("error: {}: {}. Try: {}\n", what, why, try_next).c_str(), stderr);
  return 1;
}

/// Blocks until a signal says to stop. SIGHUP is handled meanwhile.
void wait_for_stop(boost::asio::io_context& signals_io, Shell& shell, const std::filesystem::path& config_file) {
  boost::asio::signal_set signals(signals_io, SIGTERM, SIGINT, SIGHUP);
  std::function<void()> wait = [&] {
    signals.async_wait([&](boost::system::error_code ec, int signal) {
      if (ec || signal != SIGHUP) return;
      reload(shell, config_file);
      wait();
    });
  };
  wait();
  signals_io.run();
}

}  // namespace

Prepared prepare_daemon(const std::filesystem::path& config_file) {
  Prepared out{{}, {}, {}, {}, {}, {}, config::Findings(config_file.string())};
  config::LoadedConfig loaded = config::load_relayd_config(config_file);
  out.findings.append(loaded.findings);
  if (!loaded.config) return out;
  out.config = std::move(loaded.config);
  config::LoadedTopology topology = config::load_topology(out.config->topology);
  out.findings.append(topology.findings);
  if (topology.model) out.findings.append(config::check_against_topology(*out.config, *topology.model));
  out.model = std::move(topology.model);
  out.plan = std::move(topology.plan);
  check_identity(out);
  check_image(out);
  return out;
}

int run_daemon(Prepared prepared) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is a failed write, as a full disk is
  set_up_logging(*prepared.config);
  const std::filesystem::path config_file = prepared.config->file;
  auto store = HostStore::open(store_options(prepared), *prepared.verifier, prepared.signer);
  if (!store)
    return complain("cannot use the state directory", store.error().text(),
                    "another state_dir, or stop the process that has it");
  boost::asio::io_context io, signals_io;
  const unsigned io_threads = prepared.config->limits.io_threads;
  admin::AdminOptions admin_options;
  admin_options.path = prepared.config->admin.socket;
  admin_options.mode = prepared.config->admin.mode;
  admin_options.report = [](const std::string& text) { spdlog::error("admin: {}", text); };
  Shell shell(io, ShellParts{std::move(*prepared.config), std::move(*prepared.model), std::move(*prepared.plan),
                             prepared.tls, std::move(*store)});
  admin::AdminServer server(io.get_executor(), admin_options);
  add_admin_routes(server, shell);
  IoThreads threads(io, io_threads);

  int status = 0;
  if (auto started = shell.start(); !started) {
    status =
        complain("cannot start", started.error().text(), "another port or address: listen in " + config_file.string());
  } else if (auto listening = server.start(); !listening) {
    status = complain("cannot open the admin socket", listening.error().text(),
                      "another path: admin.socket in " + config_file.string());
  } else {
    spdlog::info("relayd {} is up: role {}, port {}, image {}", shell.parts().config.node,
                 config::name_of(shell.parts().config.role), shell.port(), shell.parts().config.image.dir.string());
    wait_for_stop(signals_io, shell, config_file);
    spdlog::info("stopping");
  }
  std::promise<void> server_stopped;
  server.stop([&] { server_stopped.set_value(); });
  server_stopped.get_future().wait();
  shell.stop();
  threads.join();
  return status;
}

}  // namespace deltarelay::relay
