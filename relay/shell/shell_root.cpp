// What only a root does: check an export, publish it, encode it, decide.
#include <fmt/format.h>

#include <boost/asio/post.hpp>

#include "codec/payloads.hpp"
#include "relay/shell/root_store.hpp"
#include "relay/shell/shell.hpp"

namespace deltarelay::relay {

codec::BlockReader Shell::base_reader() const {
  return
      [image = parts_.store->image()](codec::BlockId id, codec::MutableBytes scratch) -> codec::Result<codec::Bytes> {
        const codec::MutableBytes out = scratch.first(image->layout().size_of(id));
        if (auto read = image->image().read_block(id, out); !read) return read.error().code;
        return codec::Bytes(out);
      };
}

void Shell::publish(const std::string& directory, std::optional<Version> version, std::string policy, Done done) {
  boost::asio::post(readers_, [this, directory, version, policy = std::move(policy), done = std::move(done)] {
    const auto image = parts_.store->image();
    std::optional<codec::Checked<std::shared_ptr<const Export>>> checked;
    StoreResult<void> same;
    if (image) same = image->image().check_identity();
    if (image && same) checked = Export::open(directory, image->layout());
    on_core([this, directory, version, policy, done, checked, same] {
      if (!same) return done(RequestResult{{}, reason_code(same.error()), same.error().text()});
      if (!checked) return done(RequestResult{{}, "NOT_READY", "the root's image is not open yet"});
      const std::uint64_t request = ++requests_made_;
      requests_.emplace(request, done);
      PublishRequested event{request, directory, version, policy};
      publish_checked(request, std::move(event), *checked);
    });
  });
}

void Shell::publish_checked(std::uint64_t request, PublishRequested event,
                            codec::Checked<std::shared_ptr<const Export>> checked) {
  if (!checked) return perform(Answer{request, Version{}, "EXPORT_INVALID", checked.error().text()});
  // A second request for one directory while the first is encoded is refused by the core before it takes this.
  exports_[event.directory] = *checked;
  handle(event);
}

void Shell::abort(Version version, std::string why, Done done) {
  on_core([this, version, why = std::move(why), done = std::move(done)] {
    const std::uint64_t request = ++requests_made_;
    requests_.emplace(request, done);
    handle(AbortRequested{request, version, why});
  });
}

void Shell::estimate(const std::string& directory, std::function<void(codec::Checked<RefitEstimate>)> done) {
  boost::asio::post(readers_, [this, directory, done = std::move(done)] {
    const auto image = parts_.store->image();
    const auto table = parts_.store->table();
    if (!image || !table)
      return done(
          codec::Failure{boost::system::errc::make_error_code(boost::system::errc::resource_unavailable_try_again),
                         parts_.config.image.dir.string(), "the root's image is not open yet"});
    auto source = Export::open(directory, image->layout());
    if (!source) return done(source.error());
    codec::RefitControl control;
    done(estimate_refit(base_reader(), table->base(), **source, 1, control));
  });
}

void Shell::perform(const Answer& action) {
  auto found = requests_.find(action.request);
  if (found == requests_.end()) return;
  const Done done = std::move(found->second);
  requests_.erase(found);
  done(RequestResult{action.version, action.code, action.text});
}

void Shell::perform(const SaveManifest& action) {
  feed_from_state([this, action]() -> Event { return save_manifest(*parts_.store, action); });
}

void Shell::perform(const SealBegin& action) {
  const auto image = parts_.store->image();
  if (!image) return feed(EncodeEnded{action.version, "IMAGE_REPLACED", "the root's image is not open any more"});
  codec::RecordHeader header;
  header.type = codec::RecordType::begin;
  header.mesh = parts_.store->options().mesh;
  header.epoch = node_->epoch();
  header.version = action.version;
  const auto payload = begin_payload(image->layout(), action.base, node_->image().image).encode();
  feed(RecordProduced{codec::seal_record(header, payload, parts_.store->signer())});
}

void Shell::perform(const StartEncode& action) {
  auto found = exports_.find(action.directory);
  if (found == exports_.end())
    return feed(EncodeEnded{action.version, "EXPORT_INVALID", "the export was never opened"});
  const auto image = parts_.store->image();
  const auto table = parts_.store->table();
  if (!image || !table || !node_->image().end_record)
    return feed(EncodeEnded{action.version, "IMAGE_REPLACED", "the root's image was lost before it could be read"});
  RefitOrder order;
  order.version = action.version;
  order.base = action.base;
  order.epoch = node_->epoch();
  order.mesh = parts_.store->options().mesh;
  order.base_image = node_->image().image;
  order.read_base = base_reader();
  order.base_digests = table->base();
  if (auto end = codec::EndPayload::decode(node_->image().end_record->payload()))
    order.base_companions = std::move(end->companions);
  order.source = found->second;
  order.signer = *parts_.store->signer();
  exports_.clear();
  producer_->start(std::move(order));
}

void Shell::perform(const StopEncode&) {
  producer_->cancel();
}

void Shell::perform(const SaveDecision& action) {
  log_writer_->sync_then([this, action](StoreResult<void> synced) {
    if (!synced) return feed(DecisionSaved{nullptr, reason_code(synced.error()), synced.error().text()});
    feed_from_state([this, action]() -> Event { return save_decision(*parts_.store, action); });
  });
}

}  // namespace deltarelay::relay
