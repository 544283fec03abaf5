// One command line, run in this process with time that jumps instead of passing.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "tools/relayctl/command_line.hpp"
#include "tools/relayctl/context.hpp"
#include "tools/relayctl/fleet_commands.hpp"
#include "tools/relayctl/pace.hpp"

namespace deltarelay::relayctl::test {

/// Starts at noon of 31 January 2026; rest() returns at once and asks to stop after `rests_max` of them.
class TestPace final : public Pace {
 public:
  explicit TestPace(int rests_max = 100'000) : rests_left_(rests_max) {}
  [[nodiscard]] Instant now() const override { return Instant{} + passed_; }
  [[nodiscard]] std::chrono::sys_seconds wall() const override {
    return std::chrono::sys_seconds(std::chrono::seconds(1'769'860'800)) +
           std::chrono::floor<std::chrono::seconds>(passed_);
  }
  [[nodiscard]] bool rest(std::chrono::milliseconds time) override {
    passed_ += time;
    return --rests_left_ > 0;
  }
  [[nodiscard]] std::chrono::milliseconds passed() const { return passed_; }

 private:
  std::chrono::milliseconds passed_{0};
  int rests_left_;
};

struct Ran {
  int exit_code = -1;
  std::string out;
  std::string err;
};

/// What a stream was given.
class Captured {
 public:
  Captured() : file_(std::tmpfile()) {}
  ~Captured() { std::fclose(file_); }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  [[nodiscard]] std::FILE* file() const { return file_; }
  [[nodiscard]] std::string text() const {
    std::string all(static_cast<std::size_t>(std::ftell(file_)), '\0');
    std::rewind(file_);
    all.resize(std::fread(all.data(), 1, all.size(), file_));
    return all;
  }

 private:
  std::FILE* file_;
};

inline Ran run_relayctl(const std::vector<std::string>& arguments, Pace& pace, const Surroundings& surroundings = {}) {
  const Captured out;
  const Captured err;
  Context context;
  context.surroundings = surroundings;
  context.out = out.file();
  context.err = err.file();
  CLI::App app{"", "relayctl"};
  add_global_options(app, context);
  add_fleet_commands(app, context, pace);
  std::vector<const char*> argv{"relayctl"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  Ran ran;
  ran.exit_code = run_command_line(app, context, static_cast<int>(argv.size()), argv.data());
  ran.out = out.text();
  ran.err = err.text();
  return ran;
}

inline Ran run_relayctl(const std::vector<std::string>& arguments) {
  TestPace pace;
  return run_relayctl(arguments, pace);
}

}  // namespace deltarelay::relayctl::test
