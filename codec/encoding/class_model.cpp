#include "codec/encoding/class_model.hpp"

#include <cassert>

namespace deltarelay::codec {
namespace {

// FORMAT.md, "Class models".
constexpr unsigned model_count_bits = 4, class_count_bits = 3, key_bits = 8, low_bits_bits = 5;
constexpr std::size_t model_bytes_max = 2 + class_count_max * (3 + 2 * frequencies_bytes_max);

void write_parts(BitWriter& writer, const KeyParts& parts) noexcept {
  writer.put(parts.count - 1, class_count_bits);
  for (unsigned part = 1; part < parts.count; ++part) writer.put(parts.first_key[part], key_bits);
}

bool read_parts(BitReader& reader, KeyParts& parts) noexcept {
  parts.count = static_cast<unsigned>(reader.get(class_count_bits)) + 1;
  for (unsigned part = 1; part < parts.count; ++part) {
    parts.first_key[part] = static_cast<std::uint8_t>(reader.get(key_bits));
    if (parts.first_key[part] <= parts.first_key[part - 1]) return false;
  }
  return true;
}

// Every context has a table, so that a change finds one whatever its key is; a class without changes needs none.
bool read_model(BitReader& reader, ClassModel& model) noexcept {
  if (!read_parts(reader, model.classes) || !read_parts(reader, model.contexts)) return false;
  for (unsigned c = 0; c < model.classes.count; ++c) {
    model.gaps[c].low_bits = static_cast<unsigned>(reader.get(low_bits_bits));
    if (model.gaps[c].low_bits > gap_low_bits_max || !model.gaps[c].tokens.read(reader, gap_tokens)) return false;
  }
  for (unsigned c = 0; c < model.contexts.count; ++c) {
    if (!model.steps[c].read(reader, step_token_count(8)) || model.steps[c].count == 0) return false;
  }
  return true;
}

}  // namespace

std::array<std::uint8_t, 256> KeyParts::part_of() const noexcept {
  std::array<std::uint8_t, 256> out{};
  unsigned part = 0;
  for (unsigned key = 0; key < out.size(); ++key) {
    while (part + 1 < count && first_key[part + 1] <= key) ++part;
    out[key] = static_cast<std::uint8_t>(part);
  }
  return out;
}

kernels::ClassMap class_map(const KeyParts& classes) noexcept {
  kernels::ClassMap out;
  out.count = classes.count;
  out.first_key = classes.first_key;
  out.class_of = classes.part_of();
  for (unsigned key = 0; key < 256; ++key) out.class_bit[key] = static_cast<std::uint8_t>(1u << out.class_of[key]);
  return out;
}

std::vector<std::byte> write_class_models(std::span<const ClassModel> models) {
  assert(!models.empty() && models.size() <= class_models_max);
  std::vector<std::byte> out(1 + models.size() * model_bytes_max + BitWriter::slack_bytes);
  BitWriter writer(out);
  writer.put(models.size() - 1, model_count_bits);
  for (const ClassModel& model : models) {
    write_parts(writer, model.classes);
    write_parts(writer, model.contexts);
    for (unsigned c = 0; c < model.classes.count; ++c) {
      writer.put(model.gaps[c].low_bits, low_bits_bits);
      model.gaps[c].tokens.write(writer);
    }
    for (unsigned c = 0; c < model.contexts.count; ++c) model.steps[c].write(writer);
  }
  out.resize(writer.finish());
  return out;
}

Result<std::vector<ClassModel>> read_class_models(Bytes tables) {
  BitReader reader(tables);
  const auto count = static_cast<std::size_t>(reader.get(model_count_bits)) + 1;
  std::vector<ClassModel> out;
  for (std::size_t i = 0; i < count; ++i) {
    if (!read_model(reader, out.emplace_back())) return errc::malformed_payload;
  }
  if (auto end = reader.finish(); !end) return end.error();
  return out;
}

}  // namespace deltarelay::codec
