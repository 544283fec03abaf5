// Class: gaps counted among elements of like old value, steps coded given the old value, all in one interleaved rANS.
// The default for weights of any dtype. Format: FORMAT.md, "class".
//
// Tables are shared by the class blocks of a frame, so encoding takes two steps: collect() turns each block into
// symbols while it is in the cache, close() fits the tables to the symbols of all blocks, write() codes a block with
// them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "codec/digest.hpp"
#include "codec/encoding/changes.hpp"
#include "codec/encoding/class_fit.hpp"
#include "codec/encoding/class_model.hpp"
#include "codec/errc.hpp"

namespace deltarelay::codec {

/// Memory that only grows and is not cleared: what is written to it is read, nothing else.
template <class T>
class Scratch {
 public:
  /// At least `size` elements; what was there is kept.
  T* reserve(std::size_t size) {
    if (size > size_) {
      const std::size_t grown = size + size / 2;
      auto memory = std::make_unique_for_overwrite<T[]>(grown);
      std::copy_n(memory_.get(), size_, memory.get());
      memory_ = std::move(memory);
      size_ = grown;
    }
    return memory_.get();
  }
  [[nodiscard]] T* data() const noexcept { return memory_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::unique_ptr<T[]> memory_;
  std::size_t size_ = 0;
};

/// Reuses its buffers; one per worker.
class ClassEncoder {
 public:
  /// Forgets the blocks and models of the frame before.
  void clear() noexcept;
  /// A model for blocks like those in the sample; none when the frame has as many as it may.
  [[nodiscard]] std::optional<std::size_t> add_model(const ClassSample& sample);
  /// Scans a block and finds its changes under a model: what scan_changes() does, and the first half of collecting, in
  /// one pass. Fills `mask`, `block.changed_count` and, where something changed, `block.target`. REQUIRES
  /// kernels::mask_words() words at `mask`.
  void scan(std::size_t model, ScannedBlock& block, std::uint64_t* mask);
  /// Collects the block that was scanned last; returns its number. REQUIRES changed_count > 0.
  std::size_t collect(const ScannedBlock& block);
  /// Fits the tables. After it, tables() and write().
  void close();
  [[nodiscard]] const std::vector<std::byte>& tables() const noexcept { return tables_; }
  /// Appends a block to `out`.
  void write(std::size_t block, std::vector<std::byte>& out);

 private:
  static constexpr std::size_t histograms = 4;
  struct Model {
    ClassModel code;
    kernels::ClassMap map;
    std::array<std::uint8_t, 256> context_of{};
    std::array<std::vector<std::uint32_t>, histograms> counts;  // by symbol; to be added up
    // Encoding table: gap symbols first, then step symbols.
    std::vector<std::uint32_t> ranges;
  };
  // Places in symbols_ and bits_.
  struct Block {
    std::size_t model = 0;
    std::array<std::uint32_t, class_count_max> gap_symbols{};
    std::size_t symbols_at = 0, step_symbols = 0;
    std::size_t low_at = 0, low_bytes = 0, raw_at = 0, raw_bytes = 0;
  };
  void collect_gaps(Model& model, Block& block);
  void collect_step_symbols(Model& model, Block& block, const ScannedBlock& scanned);
  void fit_tables(Model& model);

  std::vector<std::unique_ptr<Model>> models_;
  std::size_t model_count_ = 0;
  std::size_t scanned_model_ = 0;
  kernels::ClassSplit split_;  // of the block scanned last; ranks begin at multiples of ranks_stride_
  std::size_t ranks_stride_ = 0;
  std::vector<Block> blocks_;
  std::vector<std::byte> tables_;
  std::size_t symbols_used_ = 0, bits_used_ = 0;
  Scratch<std::uint16_t> symbols_;
  Scratch<std::byte> bits_, words_, steps_;
  Scratch<std::uint32_t> ranks_, gaps_;
  Scratch<std::uint8_t> keys_;
};

/// Reuses its buffers; one per worker.
class ClassDecoder {
 public:
  ClassDecoder();
  ClassDecoder(ClassDecoder&&) noexcept;
  ClassDecoder& operator=(ClassDecoder&&) noexcept;
  ~ClassDecoder();

  /// Decodes into `out` over `base`: equal sizes, a multiple of `width`. `tables` are those of the block's frame.
  /// Returns the digest of `out`, hashed tile by tile as it is written.
  [[nodiscard]] Result<Digest> decode(Bytes data, Bytes tables, unsigned width, Bytes base, MutableBytes out);

 private:
  struct Model;
  struct Block;
  [[nodiscard]] Result<void> use_tables(Bytes tables);
  [[nodiscard]] Result<void> read_head(Bytes data, std::size_t elements, Block& block) const;
  [[nodiscard]] errc mark_changes(Block& block);
  [[nodiscard]] errc apply(Block& block, unsigned width, Bytes base, MutableBytes out, DigestStream& digest);

  std::vector<std::byte> tables_;  // whose models these are
  std::vector<std::unique_ptr<Model>> models_;
  Scratch<std::uint8_t> tokens_, keys_;
  Scratch<std::byte> marks_, steps_;
  Scratch<std::uint64_t> ranks_, changed_;
};

}  // namespace deltarelay::codec
