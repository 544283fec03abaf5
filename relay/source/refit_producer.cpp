#include "relay/source/refit_producer.hpp"

#include <algorithm>

#include "codec/companion_files.hpp"

namespace deltarelay::relay {
namespace {

codec::BlockReader reader_of(const Export& source) {
  return [&source](codec::BlockId id, codec::MutableBytes scratch) { return source.read_block(id, scratch); };
}

const char* reason_of(const codec::Failure& failure) {
  if (failure.code == codec::errc::file_changed) return "EXPORT_CHANGED";
  if (failure.code == boost::system::errc::operation_canceled) return "STOPPED";
  return "EXPORT_UNREADABLE";
}

}  // namespace

codec::Checked<RefitEstimate> estimate_refit(const codec::BlockReader& read_base,
                                             std::span<const codec::Digest> base_digests, const Export& source,
                                             unsigned threads, codec::RefitControl& control) {
  const codec::RefitInput input{*source.checkpoint().layout(), read_base, reader_of(source), base_digests};
  codec::RefitOptions options;
  options.threads = threads;
  auto result = codec::encode_refit(input, options, control, [](codec::EncodedFrame&&) {});
  if (!result) return result.error();
  return RefitEstimate{result->stats, control.payload_bytes.load()};
}

codec::BeginPayload begin_payload(const codec::Layout& layout, Version base, const codec::Digest& base_image) {
  codec::BeginPayload begin;
  begin.base = base;
  begin.base_image = base_image;
  begin.layout_digest = layout.digest();
  begin.block_bytes = layout.block_bytes();
  begin.total_bytes = layout.total_bytes();
  return begin;
}

/// Gives each record the next sequence, seals it and hands it out: one at a time, so that the order is that of the
/// sequence.
class RefitProducer::Sealer {
 public:
  Sealer(RefitProducer& producer, const RefitOrder& order) : producer_(producer), order_(order) {}

  void seal(codec::RecordType type, codec::Bytes payload) {
    producer_.acquire(payload.size() + codec::record_header_bytes);
    const std::scoped_lock lock(mutex_);
    codec::RecordHeader header;
    header.type = type;
    header.mesh = order_.mesh;
    header.epoch = order_.epoch;
    header.version = order_.version;
    header.sequence = next_;
    next_ = codec::next(next_);
    producer_.feed_(RecordProduced{codec::seal_record(header, payload, &order_.signer)});
  }

 private:
  RefitProducer& producer_;
  const RefitOrder& order_;
  std::mutex mutex_;
  Sequence next_{};
};

void RefitProducer::start(RefitOrder order) {
  join();
  control_ = std::make_unique<codec::RefitControl>();
  {
    const std::scoped_lock lock(mutex_);  // the log writer may still tell of the predecessor's records
    unwritten_bytes_ = 0;
  }
  thread_ = std::thread([this, order = std::move(order)] { run(order); });
}

void RefitProducer::cancel() {
  {
    const std::scoped_lock lock(mutex_);
    control_->cancel = true;
  }
  room_.notify_all();
}

void RefitProducer::join() {
  if (!thread_.joinable()) return;
  cancel();
  wait();
}

void RefitProducer::written(std::uint64_t bytes) {
  {
    const std::scoped_lock lock(mutex_);
    unwritten_bytes_ -= std::min(bytes, unwritten_bytes_);
  }
  room_.notify_all();
}

void RefitProducer::acquire(std::uint64_t bytes) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] {
    return control_->cancel || unwritten_bytes_ == 0 || unwritten_bytes_ + bytes <= options_.unwritten_bytes_max;
  });
  unwritten_bytes_ += bytes;
}

void RefitProducer::run(const RefitOrder& order) {
  const auto ended = [&](std::string code, std::string text) {
    feed_(EncodeEnded{order.version, std::move(code), std::move(text)});
  };
  const codec::Layout& layout = *order.source->checkpoint().layout();
  Sealer sealer(*this, order);
  sealer.seal(codec::RecordType::begin, begin_payload(layout, order.base, order.base_image).encode());

  const codec::RefitInput input{layout, order.read_base, reader_of(*order.source), order.base_digests};
  codec::RefitOptions options;
  options.threads = options_.threads;
  auto result = codec::encode_refit(input, options, *control_, [&](codec::EncodedFrame&& frame) {
    sealer.seal(codec::RecordType::frame, frame.payload);
  });
  if (!result) return ended(reason_of(result.error()), result.error().text());
  // Only now is it known that what was sent is one version of the export and not a mixture.
  if (auto same = order.source->check_unchanged(); !same) return ended("EXPORT_CHANGED", same.error().text());

  codec::EndPayload end;
  for (const codec::FilePayload& file : order.source->companions()) {
    const codec::CompanionFile described = codec::describe(file);
    end.companions.push_back(described);
    if (std::ranges::find(order.base_companions, described) == order.base_companions.end())
      sealer.seal(codec::RecordType::file, file.encode());
  }
  end.frame_count = result->frames;
  end.changed_blocks = result->stats.changed_blocks;
  end.changed_elements = result->stats.changed_elements;
  end.image = codec::digest_of(std::span<const codec::Digest>(result->next_digests));
  end.layout_digest = layout.digest();
  sealer.seal(codec::RecordType::end, end.encode());
  ended("", "");
}

}  // namespace deltarelay::relay
