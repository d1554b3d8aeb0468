/* A machine that is not calm, for LD_PRELOAD: what its kernel says of it, and how it treats the load process.

   Each variable that is set is one unrest; all names begin with UNEASY_. CPU_BUSY, CPU_STOLEN: shares of all
   cores, in /proc/stat. Of a process of harness.load: LATE_MS, so much later it wakes up; SPIN_MS, so long it
   computes after each look at its sockets; CLOCK_US, so long takes a read of the wall clock; SOCKETS, the system
   gives it no more; RESENT, TCP sent a segment again in every so many looks. Once, AFTER_S from its first
   request: STALL_MS, it stands still; STEP_MS, the wall clock is set; SUSPENDED_MS, the machine slept; KILLED. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int is_load;
static double first_send;

static double asked(const char *name) {
    const char *text = getenv(name);
    return text ? atof(text) : 0;
}

static double now(clockid_t clock) {
    struct timespec at;
    REAL(clock_gettime)(clock, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

static void wait_ms(double milliseconds) {
    struct timespec time = {milliseconds / 1e3, (long)(milliseconds * 1e6) % 1000000000};
    REAL(clock_nanosleep)(CLOCK_MONOTONIC, 0, &time, NULL);
}

__attribute__((constructor)) static void begin(void) {
    char line[4096] = "";
    FILE *file = REAL(fopen)("/proc/self/cmdline", "r");
    size_t length = file ? fread(line, 1, sizeof line, file) : 0;
    if (file) fclose(file);
    is_load = memmem(line, length, "harness.load", 12) != NULL;
}

static int is_after(void) {
    return is_load && first_send && now(CLOCK_MONOTONIC) - first_send > asked("UNEASY_AFTER_S");
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    double more_ms = 0;
    if (is_load && clock == CLOCK_REALTIME && asked("UNEASY_CLOCK_US")) {
        double until = now(CLOCK_MONOTONIC) + asked("UNEASY_CLOCK_US") / 1e6;
        while (now(CLOCK_MONOTONIC) < until);
    }
    int code = REAL(clock_gettime)(clock, at);
    if (clock == CLOCK_REALTIME || clock == CLOCK_BOOTTIME)
        if (is_after()) more_ms = asked("UNEASY_SUSPENDED_MS") + (clock == CLOCK_REALTIME ? asked("UNEASY_STEP_MS") : 0);
    long nanoseconds = at->tv_nsec + (long)(more_ms * 1e6);
    at->tv_sec += nanoseconds / 1000000000;
    at->tv_nsec = nanoseconds % 1000000000;
    return code;
}

int epoll_wait(int poll, struct epoll_event *events, int most, int timeout) {
    static int struck;
    int found = REAL(epoll_wait)(poll, events, most, timeout), why = errno;
    if (is_load) {
        if (asked("UNEASY_LATE_MS")) wait_ms(asked("UNEASY_LATE_MS"));
        if (asked("UNEASY_SPIN_MS")) {
            double until = now(CLOCK_PROCESS_CPUTIME_ID) + asked("UNEASY_SPIN_MS") / 1e3;
            while (now(CLOCK_PROCESS_CPUTIME_ID) < until);
        }
        if (!struck && is_after()) {
            struck = 1;
            if (asked("UNEASY_KILLED")) raise(SIGKILL);
            wait_ms(asked("UNEASY_STALL_MS"));
        }
    }
    errno = why;
    return found;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    int code = REAL(clock_nanosleep)(clock, flags, time, left);
    if (is_load && asked("UNEASY_LATE_MS")) wait_ms(asked("UNEASY_LATE_MS"));
    return code;
}

int socket(int family, int type, int protocol) {
    static int opened;
    if (is_load && (type & 0xf) == SOCK_STREAM && getenv("UNEASY_SOCKETS") && ++opened > asked("UNEASY_SOCKETS")) {
        errno = EMFILE;
        return -1;
    }
    return REAL(socket)(family, type, protocol);
}

int getsockopt(int descriptor, int level, int name, void *value, socklen_t *size) {
    static unsigned again[4096];
    static int looks;
    int code = REAL(getsockopt)(descriptor, level, name, value, size), every = asked("UNEASY_RESENT");
    if (!code && is_load && every && level == IPPROTO_TCP && name == TCP_INFO) {
        if (++looks % every == 0) again[descriptor % 4096]++;
        ((struct tcp_info *)value)->tcpi_total_retrans += again[descriptor % 4096];
    }
    return code;
}

ssize_t sendmsg(int descriptor, const struct msghdr *message, int flags) {
    if (!first_send) first_send = now(CLOCK_MONOTONIC);
    return REAL(sendmsg)(descriptor, message, flags);
}

/* /proc/stat with these shares of the time since the machine began, and the rest as it is. */
static int open_stat(void) {
    char line[65536];
    double ticks = now(CLOCK_MONOTONIC) * sysconf(_SC_CLK_TCK) * sysconf(_SC_NPROCESSORS_ONLN);
    double busy = asked("UNEASY_CPU_BUSY"), stolen = asked("UNEASY_CPU_STOLEN");
    int made = memfd_create("stat", MFD_CLOEXEC);
    FILE *file = REAL(fopen)("/proc/stat", "r");
    if (!fgets(line, sizeof line, file)) return -1;
    dprintf(made, "cpu %.0f 0 0 %.0f 0 0 0 %.0f 0 0\n", busy * ticks, (1 - busy - stolen) * ticks, stolen * ticks);
    while (fgets(line, sizeof line, file)) dprintf(made, "%s", line);
    fclose(file);
    lseek(made, 0, SEEK_SET);
    return made;
}

#define OPENING(name)                                                          \
    int name(const char *path, int flags, ...) {                               \
        va_list rest;                                                          \
        va_start(rest, flags);                                                 \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                          \
        if (!strcmp(path, "/proc/stat")) return open_stat();                   \
        return REAL(name)(path, flags, mode);                                  \
    }
OPENING(open)
OPENING(open64)
