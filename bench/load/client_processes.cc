#include "bench/load/client_processes.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace bouquet::bench {
namespace {

constexpr int kPollMilliseconds = 100;
constexpr auto kInterruptGrace = std::chrono::seconds(5);
constexpr size_t kMaxLineBytes = size_t{256} << 20;
constexpr size_t kReadBytes = 64 << 10;

// Lines from a process to its parent begin with one of these.
constexpr char kReadyMark = 'R';
constexpr char kProgressMark = 'P';
constexpr char kResultMark = 'J';
constexpr char kErrorMark = 'E';

void CloseFd(int& fd) {
  if (fd >= 0) {
    close(fd);
    fd = -1;
  }
}

bool WriteAll(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

struct Child {
  pid_t pid = -1;
  int socket = -1;
  std::string unread;
  bool ready = false;
  int64_t num_answered = 0;
  std::optional<Result<std::string>> result;
};

std::string HowItEnded(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return fmt::format("killed by signal {} ({})", signal, strsignal(signal));
  }
  return fmt::format("exit code {}", WEXITSTATUS(wait_status));
}

/// The processes of one call; whatever happens, all are gone when it ends.
class Family {
 public:
  explicit Family(size_t count) { children_.reserve(count); }
  ~Family() {
    for (Child& child : children_) {
      CloseFd(child.socket);
      if (child.pid > 0) {
        kill(child.pid, SIGKILL);
        Reap(child);
      }
    }
  }
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  Status Add(const ClientWork& work);
  Status ReadSome();
  void Start();
  void Signal(int signal);

  bool AllReady() const {
    return std::all_of(children_.begin(), children_.end(),
                       [](const Child& child) { return child.ready || child.result; });
  }
  bool AllDone() const {
    return std::all_of(children_.begin(), children_.end(),
                       [](const Child& child) { return child.result.has_value(); });
  }
  int64_t num_answered() const {
    int64_t total = 0;
    for (const Child& child : children_) {
      total += child.num_answered;
    }
    return total;
  }
  Result<std::vector<std::string>> Results() &&;

 private:
  [[noreturn]] void RunChild(size_t index, int socket, const ClientWork& work);
  Status Read(size_t index);
  Status TakeLine(size_t index, std::string_view line);
  Status EndedEarly(size_t index);
  static int Reap(Child& child) {
    int wait_status = 0;
    while (waitpid(child.pid, &wait_status, 0) < 0 && errno == EINTR) {
    }
    child.pid = -1;
    return wait_status;
  }

  std::vector<Child> children_;
};

Status Family::Add(const ClientWork& work) {
  std::array<int, 2> ends{-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) {
    return ResourceExhausted(fmt::format("no socket to a client process: {}", strerror(errno)));
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    CloseFd(ends[0]);
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody reads the result of an orphan
    if (getppid() != parent) {
      _exit(1);
    }
    RunChild(children_.size(), ends[1], work);
  }
  CloseFd(ends[1]);
  if (pid < 0) {
    const Status status =
        ResourceExhausted(fmt::format("a client process cannot be started: {}", strerror(errno)));
    CloseFd(ends[0]);
    return status;
  }
  Child& child = children_.emplace_back();
  child.pid = pid;
  child.socket = ends[0];
  return {};
}

void Family::RunChild(size_t index, int socket, const ClientWork& work) {
  for (Child& sibling : children_) {  // an open end here would hide that the parent closed its own
    CloseFd(sibling.socket);
  }
  ParentChannel parent(socket);
  try {
    parent.ReportResult(work(index, parent));
  } catch (const std::exception& exception) {
    parent.ReportResult(Internal(exception.what()));
  }
  _exit(0);  // what the parent has buffered for its own output is not to be written twice
}

Status Family::ReadSome() {
  std::vector<pollfd> polled;
  std::vector<size_t> indices;
  for (size_t i = 0; i < children_.size(); ++i) {
    if (!children_[i].result) {
      polled.push_back({.fd = children_[i].socket, .events = POLLIN, .revents = 0});
      indices.push_back(i);
    }
  }
  if (poll(polled.data(), polled.size(), kPollMilliseconds) <= 0) {
    return {};  // nothing yet, or a signal: the caller looks
  }
  for (size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents != 0) {
      RETURN_IF_ERROR(Read(indices[i]));
    }
  }
  return {};
}

Status Family::Read(size_t index) {
  Child& child = children_[index];
  std::array<char, kReadBytes> chunk;
  const ssize_t received = recv(child.socket, chunk.data(), chunk.size(), 0);
  if (received < 0 && errno == EINTR) {
    return {};
  }
  if (received <= 0 || child.unread.size() > kMaxLineBytes) {
    return EndedEarly(index);
  }
  size_t searched = child.unread.size();
  child.unread.append(chunk.data(), static_cast<size_t>(received));
  for (size_t end = 0; (end = child.unread.find('\n', searched)) != std::string::npos;) {
    RETURN_IF_ERROR(TakeLine(index, std::string_view(child.unread).substr(0, end)));
    child.unread.erase(0, end + 1);
    searched = 0;
  }
  return {};
}

Status Family::TakeLine(size_t index, std::string_view line) {
  Child& child = children_[index];
  const std::string_view rest = line.substr(std::min<size_t>(line.size(), 1));
  switch (line.empty() ? '\0' : line.front()) {
    case kReadyMark: child.ready = true; return {};
    case kProgressMark:
      std::from_chars(rest.data(), rest.data() + rest.size(), child.num_answered);
      return {};
    case kResultMark: child.result.emplace(std::string(rest)); return {};
    case kErrorMark: {
      int code = 0;
      const char* end = std::from_chars(rest.data(), rest.data() + rest.size(), code).ptr;
      return Status(static_cast<StatusCode>(code), std::string(end, rest.data() + rest.size()));
    }
    default: return EndedEarly(index);
  }
}

Status Family::EndedEarly(size_t index) {
  Child& child = children_[index];
  const pid_t pid = child.pid;
  const int wait_status = Reap(child);
  return Internal(fmt::format("client process {} of {} (process id {}) ended without a result: {}",
                              index + 1, children_.size(), pid, HowItEnded(wait_status)));
}

void Family::Start() {
  for (const Child& child : children_) {
    WriteAll(child.socket, "G");
  }
}

void Family::Signal(int signal) {
  for (const Child& child : children_) {
    if (!child.result && child.pid > 0) {
      kill(child.pid, signal);
    }
  }
}

Result<std::vector<std::string>> Family::Results() && {
  std::vector<std::string> results;
  for (Child& child : children_) {
    results.push_back(std::move(*child.result).value());
  }
  return results;
}

}  // namespace

bool ParentChannel::WaitForStart() {
  WriteLine(std::string(1, kReadyMark));
  char go = 0;
  ssize_t received = 0;
  while ((received = recv(socket_, &go, 1, 0)) < 0 && errno == EINTR) {
  }
  return received == 1;
}

void ParentChannel::ReportProgress(int64_t num_answered) {
  WriteLine(fmt::format("{}{}", kProgressMark, num_answered));
}

void ParentChannel::ReportResult(const Result<std::string>& result) {
  if (result.ok()) {
    WriteLine(kResultMark + *result);
  } else {
    WriteLine(fmt::format("{}{}{}", kErrorMark, static_cast<int>(result.code()),
                          result.status().message()));
  }
}

void ParentChannel::WriteLine(std::string line) {
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  if (!WriteAll(socket_, line)) {
    _exit(1);  // the parent has gone
  }
}

Result<std::vector<std::string>> RunClientProcesses(size_t count, const ClientWork& work,
                                                    const ClientProcessHooks& hooks) {
  Family family(count);
  for (size_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(family.Add(work));
  }
  const SystemClock clock;
  bool started = false;
  TimePoint give_up = TimePoint::max();
  while (!family.AllDone()) {
    RETURN_IF_ERROR(family.ReadSome());
    if (!started && family.AllReady()) {
      started = true;
      family.Start();
    }
    if (hooks.on_progress) {
      hooks.on_progress(family.num_answered());
    }
    if (hooks.interrupted != nullptr && *hooks.interrupted && give_up == TimePoint::max()) {
      if (!started) {
        return Cancelled("interrupted before anything was measured");
      }
      family.Signal(SIGINT);
      give_up = clock.Now() + kInterruptGrace;
    }
    if (clock.Now() >= give_up) {
      return Cancelled("interrupted, and a client process did not end in time");
    }
  }
  return std::move(family).Results();
}

}  // namespace bouquet::bench
