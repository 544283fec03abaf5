#include "codec/encoding/planes.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "codec/bytes.hpp"
#include "codec/kernels/cpu.hpp"

namespace deltarelay::codec {
namespace {

using kernels::on_this_cpu;

constexpr unsigned raw_plane = 255;  // FORMAT.md, "planes": otherwise log2 of the lanes
constexpr unsigned lanes_log2_max = 5;
constexpr double coded_pays = 0.97;  // of the raw size; less is not worth its decoding time
constexpr std::size_t slack = 64;

template <class Element>
DELTARELAY_HOT inline void split(const std::byte* elements, std::size_t count, unsigned plane,
                                 std::uint8_t* out) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const auto rotated = std::rotl(load_le<Element>(elements + i * sizeof(Element)), 1);
    out[i] = static_cast<std::uint8_t>(rotated >> (8 * plane));
  }
}

template <class Element>
DELTARELAY_HOT inline void join(const std::uint8_t* planes, std::size_t count, std::byte* elements) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    Element rotated = 0;
    for (unsigned plane = 0; plane < sizeof(Element); ++plane) {
      rotated = static_cast<Element>(rotated | static_cast<Element>(planes[plane * planes_tile + i]) << (8 * plane));
    }
    store_le(elements + i * sizeof(Element), std::rotr(rotated, 1));
  }
}

template <class Body>
void with_element(unsigned width, const Body& body) {
  switch (width) {
    case 1:
      return body(std::uint8_t{});
    case 2:
      return body(std::uint16_t{});
    case 4:
      return body(std::uint32_t{});
    default:
      return body(std::uint64_t{});
  }
}

// One plane of elements [first, first + count).
void split_plane(Bytes next, unsigned width, unsigned plane, std::size_t first, std::size_t count, std::uint8_t* out) {
  with_element(width, [&](auto element) {
    on_this_cpu([&]() DELTARELAY_HOT {
      split<decltype(element)>(next.data() + first * width, count, plane, out);
      return 0;
    });
  });
}

using Counts = std::array<std::uint32_t, tokens_max>;

// Four histograms in turn: equal bytes in a row would wait for each other's count.
void count_plane(Bytes next, unsigned width, unsigned plane, Counts& counts) {
  std::array<Counts, 4> quarters{};
  std::array<std::uint8_t, planes_tile> tile;
  const std::size_t elements = next.size() / width;
  for (std::size_t first = 0; first < elements; first += planes_tile) {
    const std::size_t count = std::min(planes_tile, elements - first);
    split_plane(next, width, plane, first, count, tile.data());
    for (std::size_t i = 0; i < count; ++i) ++quarters[i % 4][tile[i]];
  }
  for (std::size_t token = 0; token < counts.size(); ++token) {
    counts[token] = quarters[0][token] + quarters[1][token] + quarters[2][token] + quarters[3][token];
  }
}

}  // namespace

bool PlanesEncoder::encode(Bytes next, unsigned width, std::size_t bytes_max, std::vector<std::byte>& out) {
  const std::size_t elements = next.size() / width, before = out.size();
  double bytes = 0;
  bool any = false;
  for (unsigned plane = 0; plane < width; ++plane) {
    Counts counts;
    count_plane(next, width, plane, counts);
    Plane& it = planes_[plane];
    it.frequencies.fit(counts);
    const double coded = it.frequencies.cost_bits(counts) / 8 + 4.0 * lanes_for(elements);
    it.coded = coded < static_cast<double>(elements) * coded_pays;
    any |= it.coded;
    bytes += it.coded ? coded : static_cast<double>(elements);
  }
  if (!any || bytes > static_cast<double>(bytes_max)) return false;
  for (unsigned plane = 0; plane < width; ++plane) {
    if (planes_[plane].coded) {
      append_coded(next, width, plane, out);
    } else {
      append_raw(next, width, plane, out);
    }
  }
  if (out.size() - before <= bytes_max) return true;
  out.resize(before);
  return false;
}

void PlanesEncoder::append_raw(Bytes next, unsigned width, unsigned plane, std::vector<std::byte>& out) {
  ByteWriter(out).u8(raw_plane);
  const std::size_t elements = next.size() / width, at = out.size();
  out.resize(at + elements);
  split_plane(next, width, plane, 0, elements, reinterpret_cast<std::uint8_t*>(out.data() + at));
}

void PlanesEncoder::append_coded(Bytes next, unsigned width, unsigned plane, std::vector<std::byte>& out) {
  const Frequencies& frequencies = planes_[plane].frequencies;
  const std::size_t elements = next.size() / width;
  std::array<std::uint32_t, tokens_max> ranges{};
  frequencies.fill_ranges(ranges);
  words_.resize(2 * elements + slack);
  std::byte* const words_end = words_.data() + words_.size();
  kernels::RansEncoding coder = begin_rans(lanes_for(elements), words_end);
  std::array<std::uint8_t, planes_tile> tile;
  std::array<std::uint16_t, planes_tile + slack> symbols;
  for (std::size_t end = elements; end > 0;) {
    const std::size_t first = (end - 1) / planes_tile * planes_tile, count = end - first;
    split_plane(next, width, plane, first, count, tile.data());
    std::copy_n(tile.begin(), count, symbols.begin());
    kernels::rans_encode(coder, ranges.data(), symbols.data(), count);
    end = first;
  }

  std::array<std::byte, frequencies_bytes_max + BitWriter::slack_bytes> table;
  BitWriter bits(table);
  frequencies.write(bits);
  const std::size_t table_bytes = bits.finish();
  ByteWriter writer(out);
  writer.u8(static_cast<std::uint8_t>(std::countr_zero(coder.lanes)));
  writer.varint(table_bytes);
  writer.bytes(Bytes(table).first(table_bytes));
  writer.varint(static_cast<std::uint64_t>(words_end - coder.words) / 2);
  for (unsigned lane = 0; lane < coder.lanes; ++lane) writer.u32(coder.states[lane]);
  writer.bytes(Bytes(coder.words, words_end));
}

Result<void> PlanesDecoder::decode(Bytes data, unsigned width, MutableBytes out) {
  const std::size_t elements = out.size() / width;
  planes_.resize(planes_max);
  tile_.resize(planes_max * planes_tile + slack);
  ByteReader reader(data);
  for (unsigned plane = 0; plane < width; ++plane) {
    Plane& it = planes_[plane];
    const unsigned kind = reader.u8();
    if (kind == raw_plane) {
      it.raw = reader.bytes(elements);
      continue;
    }
    it.raw = {};
    reader.require(kind <= lanes_log2_max);
    BitReader bits(reader.bytes(reader.varint()));
    Frequencies frequencies;
    reader.require(reader.ok() && frequencies.read(bits, tokens_max) && frequencies.count != 0 &&
                   bits.finish().has_value());
    const std::uint64_t words = reader.varint();
    if (!reader.ok()) return reader.finish();
    read_rans(reader, 1u << kind, words, it.coder);
    frequencies.fill_slots(it.slots);
  }
  if (auto read = reader.finish(); !read) return read;

  for (std::size_t first = 0; first < elements; first += planes_tile) {
    const std::size_t count = std::min(planes_tile, elements - first);
    for (unsigned plane = 0; plane < width; ++plane) {
      Plane& it = planes_[plane];
      std::uint8_t* const to = tile_.data() + plane * planes_tile;
      if (it.raw.empty()) {
        kernels::rans_decode(it.coder, it.slots.data(), nullptr, first, count, to);
      } else {
        std::memcpy(to, it.raw.data() + first, count);
      }
    }
    with_element(width, [&](auto element) {
      on_this_cpu([&]() DELTARELAY_HOT {
        join<decltype(element)>(tile_.data(), count, out.data() + first * width);
        return 0;
      });
    });
  }
  for (unsigned plane = 0; plane < width; ++plane) {
    if (!planes_[plane].raw.empty()) continue;
    if (auto end = finish_rans(planes_[plane].coder); !end) return end;
  }
  return {};
}

}  // namespace deltarelay::codec
