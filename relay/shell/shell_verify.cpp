// `relayctl verify`: the operator's question to the core, and the reading that the core asks for.
#include "relay/shell/shell.hpp"

namespace deltarelay::relay {

void Shell::verify(bool deep, std::function<void()> begun, Done done) {
  on_core([this, deep, begun = std::move(begun), done = std::move(done)] {
    const std::uint64_t request = ++requests_made_;
    requests_.emplace(request, done);
    handle(VerifyRequested{request, deep});
    if (requests_.count(request) != 0) begun();
  });
}

StoreResult<VerifyReport> Shell::verify_own_image(bool deep, const VerifyWatch& watch) const {
  // By path, as an engine would open it, and with the ledger of the disk: what is proved is what is there.
  return verify_image(parts_.config.image.dir, parts_.config.state_dir, deep,
                      static_cast<std::uint32_t>(parts_.config.image.block_bytes), watch);
}

void Shell::perform(const VerifyImage& action) {
  verifier_.start(action);
}

void Shell::perform(const StopVerify&) {
  verifier_.stop();
}

}  // namespace deltarelay::relay
