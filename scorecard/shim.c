// Faults below the language: loaded with LD_PRELOAD, inert until armed, so that a warm parent can be forked from.
//
//   kill       SIGKILL at the n-th call by which something under a folder gets to the disk; a write is torn in half.
//              With `power`, bytes that no fsync covered are lost too, as in a power cut.
//   quota      writes under a folder fail with ENOSPC once so many bytes are written, half a write going through.
//   network    connections and messages beyond loopback and looking up names fail, and are noted in a file.
//
// Counts are shared with children that are forked after arming.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name)                                                  \
  ({                                                                \
    if (!real_##name) real_##name = dlsym(RTLD_NEXT, #name);        \
    real_##name;                                                    \
  })
#define DIRTY 256

static struct shared {
  long calls, kill_at, power, quota, written;
  char folder[PATH_MAX];
  char log[PATH_MAX];
} *armed;

// Files with bytes that no fsync has covered: a descriptor of our own, and the size that is safe.
static struct { int fd; dev_t dev; ino_t ino; off_t safe; } dirty[DIRTY];
static int num_dirty;

static ssize_t (*real_write)(int, const void*, size_t);
static ssize_t (*real_pwrite64)(int, const void*, size_t, off_t);
static ssize_t (*real_writev)(int, const struct iovec*, int);
static ssize_t (*real_copy_file_range)(int, off_t*, int, off_t*, size_t, unsigned);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_rename)(const char*, const char*);
static int (*real_renameat)(int, const char*, int, const char*);
static int (*real_unlink)(const char*);
static int (*real_unlinkat)(int, const char*, int);
static int (*real_rmdir)(const char*);
static int (*real_mkdir)(const char*, mode_t);
static int (*real_ftruncate64)(int, off_t);
static int (*real_open64)(const char*, int, ...);
static int (*real_openat64)(int, const char*, int, ...);
static int (*real_connect)(int, const struct sockaddr*, socklen_t);
static ssize_t (*real_sendto)(int, const void*, size_t, int, const struct sockaddr*, socklen_t);
static ssize_t (*real_sendmsg)(int, const struct msghdr*, int);
static int (*real_sendmmsg)(int, struct mmsghdr*, unsigned, int);
static int (*real_getaddrinfo)(const char*, const char*, const struct addrinfo*, struct addrinfo**);

static int leaves(int fd, const struct sockaddr* address);

static struct shared* arm(void) {
  if (!armed) {
    armed = mmap(0, sizeof *armed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    armed->quota = -1;
  }
  return armed;
}

// In a page of its own: what a child arms is not for its parent, nor for the parent's other children.
void faults_watch(const char* folder, long kill_at, long power, long quota) {
  const struct shared* before = armed;
  armed = NULL;
  struct shared* state = arm();
  if (before) memcpy(state->log, before->log, sizeof state->log);
  snprintf(state->folder, sizeof state->folder, "%s", folder);
  state->calls = state->written = 0;
  state->kill_at = kill_at;
  state->power = power;
  state->quota = quota;
}

long faults_calls(void) { return armed ? armed->calls : 0; }
long faults_written(void) { return armed ? armed->written : 0; }

void faults_forbid_network(const char* log) { snprintf(arm()->log, sizeof armed->log, "%s", log); }

__attribute__((constructor)) static void from_environment(void) {
  const char* log = getenv("SPARSEBERT_FAULTS_NO_NETWORK");
  if (log) faults_forbid_network(log);
}

static int inside(const char* path) {
  size_t size = strlen(armed->folder);
  return !strncmp(path, armed->folder, size) && (path[size] == '/' || !path[size]);
}

static int watched_fd(int fd) {
  if (!armed || !armed->folder[0]) return 0;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = 0;
  return inside(path);
}

static int watched(int folder_fd, const char* path) {
  if (!armed || !armed->folder[0]) return 0;
  if (path[0] == '/') return inside(path);
  if (folder_fd != AT_FDCWD) return watched_fd(folder_fd);
  char here[PATH_MAX], whole[2 * PATH_MAX];
  if (!getcwd(here, sizeof here)) return 0;
  snprintf(whole, sizeof whole, "%s/%s", here, path);
  return inside(whole);
}

static void die(void) {
  if (armed->power)
    for (int i = 0; i < num_dirty; ++i) REAL(ftruncate64)(dirty[i].fd, dirty[i].safe);
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

// Whether this is the call to die at.
static int event(void) { return __atomic_add_fetch(&armed->calls, 1, __ATOMIC_SEQ_CST) == armed->kill_at; }

static void at_event(void) {
  if (event()) die();
}

static int find_dirty(const struct stat* about) {
  for (int i = 0; i < num_dirty; ++i)
    if (dirty[i].dev == about->st_dev && dirty[i].ino == about->st_ino) return i;
  return -1;
}

static void mark_dirty(int fd, int truncated) {
  struct stat about;
  if (!armed->power || fstat(fd, &about) || !S_ISREG(about.st_mode) || num_dirty == DIRTY) return;
  int at = find_dirty(&about);
  if (at >= 0) {
    if (truncated) dirty[at].safe = 0;
    return;
  }
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  int own = REAL(open64)(link, O_WRONLY | O_CLOEXEC);
  if (own < 0) return;
  dirty[num_dirty].fd = own;
  dirty[num_dirty].dev = about.st_dev;
  dirty[num_dirty].ino = about.st_ino;
  dirty[num_dirty++].safe = truncated ? 0 : about.st_size;
}

static void mark_clean(int fd) {
  struct stat about;
  if (!armed->power || fstat(fd, &about)) return;
  int at = find_dirty(&about);
  if (at < 0) return;
  close(dirty[at].fd);
  dirty[at] = dirty[--num_dirty];
}

// How many of these bytes may be written now; -1: the disk is full.
static ssize_t allowed(int fd, size_t size) {
  mark_dirty(fd, 0);
  if (armed->quota >= 0 && armed->written + (long)size > armed->quota) {
    long left = armed->quota - armed->written;
    if (left <= 0) {
      errno = ENOSPC;
      return -1;
    }
    size = (size_t)left;
  }
  __atomic_add_fetch(&armed->written, (long)size, __ATOMIC_SEQ_CST);
  return (ssize_t)size;
}

ssize_t write(int fd, const void* data, size_t size) {
  if (leaves(fd, NULL)) return -1;
  if (!watched_fd(fd)) return REAL(write)(fd, data, size);
  ssize_t now = allowed(fd, size);
  if (now < 0) return -1;
  if (event()) {
    REAL(write)(fd, data, (size_t)now / 2);
    die();
  }
  return REAL(write)(fd, data, (size_t)now);
}

ssize_t pwrite64(int fd, const void* data, size_t size, off_t at) {
  if (!watched_fd(fd)) return REAL(pwrite64)(fd, data, size, at);
  ssize_t now = allowed(fd, size);
  if (now < 0) return -1;
  if (event()) {
    REAL(pwrite64)(fd, data, (size_t)now / 2, at);
    die();
  }
  return REAL(pwrite64)(fd, data, (size_t)now, at);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t at) { return pwrite64(fd, data, size, at); }

ssize_t writev(int fd, const struct iovec* parts, int count) {
  if (leaves(fd, NULL)) return -1;
  if (!watched_fd(fd)) return REAL(writev)(fd, parts, count);
  for (int i = 0; i < count; ++i)
    if (parts[i].iov_len) return write(fd, parts[i].iov_base, parts[i].iov_len);
  return 0;
}

// Files are copied by plain writes instead, which are watched.
ssize_t copy_file_range(int from, off_t* a, int to, off_t* b, size_t size, unsigned flags) {
  if (!watched_fd(to)) return REAL(copy_file_range)(from, a, to, b, size, flags);
  errno = ENOSYS;
  return -1;
}

int fsync(int fd) {
  if (!watched_fd(fd)) return REAL(fsync)(fd);
  at_event();
  int result = REAL(fsync)(fd);
  mark_clean(fd);
  return result;
}

int fdatasync(int fd) {
  if (!watched_fd(fd)) return REAL(fdatasync)(fd);
  at_event();
  int result = REAL(fdatasync)(fd);
  mark_clean(fd);
  return result;
}

int ftruncate64(int fd, off_t size) {
  if (watched_fd(fd)) at_event();
  return REAL(ftruncate64)(fd, size);
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int rename(const char* from, const char* to) {
  if (watched(AT_FDCWD, to)) at_event();
  return REAL(rename)(from, to);
}

int renameat(int a, const char* from, int b, const char* to) {
  if (watched(b, to)) at_event();
  return REAL(renameat)(a, from, b, to);
}

int unlink(const char* path) {
  if (watched(AT_FDCWD, path)) at_event();
  return REAL(unlink)(path);
}

int unlinkat(int folder, const char* path, int flags) {
  if (watched(folder, path)) at_event();
  return REAL(unlinkat)(folder, path, flags);
}

int rmdir(const char* path) {
  if (watched(AT_FDCWD, path)) at_event();
  return REAL(rmdir)(path);
}

int mkdir(const char* path, mode_t mode) {
  if (watched(AT_FDCWD, path)) at_event();
  return REAL(mkdir)(path, mode);
}

static int opened(int fd, int flags) {
  if (fd >= 0 && (flags & (O_CREAT | O_TRUNC)) && watched_fd(fd)) mark_dirty(fd, (flags & O_TRUNC) != 0);
  return fd;
}

static mode_t mode_of(int flags, va_list rest) { return flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0; }

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = mode_of(flags, rest);
  va_end(rest);
  if ((flags & (O_CREAT | O_TRUNC)) && watched(AT_FDCWD, path)) at_event();
  return opened(REAL(open64)(path, flags, mode), flags);
}

int openat64(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = mode_of(flags, rest);
  va_end(rest);
  if ((flags & (O_CREAT | O_TRUNC)) && watched(folder, path)) at_event();
  return opened(REAL(openat64)(folder, path, flags, mode), flags);
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open64(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return openat64(folder, path, flags, mode);
}

static int is_loopback(const struct sockaddr* address) {
  if (address->sa_family == AF_INET)
    return (ntohl(((const struct sockaddr_in*)address)->sin_addr.s_addr) >> 24) == 127;
  if (address->sa_family == AF_INET6) {
    const struct in6_addr* six = &((const struct sockaddr_in6*)address)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
  }
  return 1;  // sockets of this machine
}

// One line for each attempt to leave this machine: which program, what it tried.
static void note(const char* what) {
  char program[64] = "?", line[512];
  int self = REAL(open64)("/proc/self/comm", O_RDONLY | O_CLOEXEC);
  if (self >= 0) {
    ssize_t size = read(self, program, sizeof program - 1);
    if (size > 0) program[size - (program[size - 1] == '\n')] = 0;
    close(self);
  }
  int count = snprintf(line, sizeof line, "%d %s: %s\n", getpid(), program, what);
  int log = REAL(open64)(armed->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) return;
  ssize_t ignored = REAL(write)(log, line, (size_t)count);
  (void)ignored;
  close(log);
}

static int refused(const char* verb, const struct sockaddr* address) {
  char where[INET6_ADDRSTRLEN] = "?", what[256];
  const struct sockaddr_in* four = (const struct sockaddr_in*)address;
  const struct sockaddr_in6* six = (const struct sockaddr_in6*)address;
  int is_four = address->sa_family == AF_INET;
  inet_ntop(address->sa_family, is_four ? (const void*)&four->sin_addr : (const void*)&six->sin6_addr, where, sizeof where);
  snprintf(what, sizeof what, "%s %s port %d", verb, where, ntohs(is_four ? four->sin_port : six->sin6_port));
  note(what);
  errno = ENETUNREACH;
  return -1;
}

static int cut_off(void) { return armed && armed->log[0]; }

// A datagram socket sends nothing by being connected, which is how programs ask for a route: only what it then sends counts.
static int is_datagram(int fd) {
  int kind = 0;
  return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &(socklen_t){sizeof kind}) && kind == SOCK_DGRAM;
}

// Whether a message to this address, or to the one the socket is connected to, would leave the machine.
static int leaves(int fd, const struct sockaddr* address) {
  struct sockaddr_storage peer;
  if (!cut_off()) return 0;
  if (!address) {
    if (!is_datagram(fd) || getpeername(fd, (struct sockaddr*)&peer, &(socklen_t){sizeof peer})) return 0;
    address = (const struct sockaddr*)&peer;
  }
  return !is_loopback(address) && refused("a message to", address);
}

int connect(int fd, const struct sockaddr* address, socklen_t size) {
  if (cut_off() && !is_loopback(address) && !is_datagram(fd)) return refused("a connection to", address);
  return REAL(connect)(fd, address, size);
}

ssize_t sendto(int fd, const void* data, size_t count, int flags, const struct sockaddr* address, socklen_t size) {
  return leaves(fd, address) ? -1 : REAL(sendto)(fd, data, count, flags, address, size);
}

ssize_t send(int fd, const void* data, size_t count, int flags) { return sendto(fd, data, count, flags, NULL, 0); }

ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  return leaves(fd, message->msg_name) ? -1 : REAL(sendmsg)(fd, message, flags);
}

int sendmmsg(int fd, struct mmsghdr* messages, unsigned count, int flags) {
  return count && leaves(fd, messages->msg_hdr.msg_name) ? -1 : REAL(sendmmsg)(fd, messages, count, flags);
}

// The C library asks name servers by calls of its own that nothing can come between: names are stopped here.
int getaddrinfo(const char* name, const char* service, const struct addrinfo* hints, struct addrinfo** found) {
  char own[256] = "", what[256];
  unsigned char address[sizeof(struct in6_addr)];
  gethostname(own, sizeof own - 1);
  if (!cut_off() || !name || !strcmp(name, "localhost") || !strcmp(name, own) ||
      inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
    return REAL(getaddrinfo)(name, service, hints, found);
  snprintf(what, sizeof what, "the address of %s", name);
  note(what);
  return EAI_AGAIN;
}
