/* A file system that refuses from its n-th step on, for LD_PRELOAD.

   FULL_UNDER: folders, separated by ':'; FULL_AT: the first step that fails; FULL_ERRNO: how. FULL_STEPS: a
   file of eight zero bytes, in which all processes count together; FULL_LOG: takes a line for each step.
   Steps are files and folders that are made, renamed, written or synced. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int64_t *steps;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("FULL_STEPS");
    int descriptor = name ? (int)syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC, 0) : -1;
    if (descriptor < 0) return;
    void *mapped = mmap(NULL, sizeof *steps, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (mapped != MAP_FAILED) steps = mapped;
    syscall(SYS_close, descriptor);
}

static int is_under(const char *path) {
    char all[PATH_MAX * 2], *rest = NULL;
    const char *folders = getenv("FULL_UNDER");
    if (!steps || !folders) return 0;
    snprintf(all, sizeof all, "%s", folders);
    for (char *one = strtok_r(all, ":", &rest); one; one = strtok_r(NULL, ":", &rest))
        if (!strncmp(path, one, strlen(one))) return 1;
    return 0;
}

/* Whether this step, of an absolute path, is refused; errno says how. */
static int refused_path(const char *what, const char *path) {
    if (!is_under(path)) return 0;
    int64_t step = __atomic_fetch_add(steps, 1, __ATOMIC_SEQ_CST);
    const char *log = getenv("FULL_LOG"), *at = getenv("FULL_AT"), *how = getenv("FULL_ERRNO");
    if (log) {
        char line[PATH_MAX + 64];
        int length = snprintf(line, sizeof line, "%lld %s %s\n", (long long)step, what, path);
        int descriptor = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (descriptor >= 0) {
            syscall(SYS_write, descriptor, line, length);
            syscall(SYS_close, descriptor);
        }
    }
    if (!at || step < atoll(at)) return 0;
    errno = how ? atoi(how) : ENOSPC;
    return 1;
}

/* Where an open descriptor lies. */
static int find_place(int descriptor, char *path, size_t size) {
    char name[64];
    int before = errno;
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    ssize_t length = steps ? readlink(name, path, size - 1) : -1;
    errno = before;
    if (length < 0) return 0;
    path[length] = 0;
    return 1;
}

static int refused(const char *what, int folder, const char *path) {
    char whole[PATH_MAX * 2], here[PATH_MAX];
    if (path[0] == '/') return refused_path(what, path);
    if (folder == AT_FDCWD ? !getcwd(here, sizeof here) : !find_place(folder, here, sizeof here)) return 0;
    snprintf(whole, sizeof whole, "%s/%s", here, path);
    return refused_path(what, whole);
}

static int refused_open(const char *what, int descriptor) {
    char path[PATH_MAX];
    return find_place(descriptor, path, sizeof path) && refused_path(what, path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPENING(name)                                                         \
    int name(const char *path, int flags, ...) {                              \
        va_list rest;                                                         \
        va_start(rest, flags);                                                \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                         \
        if (flags & O_CREAT && refused("create", AT_FDCWD, path)) return -1;  \
        return REAL(name)(path, flags, mode);                                 \
    }
OPENING(open)
OPENING(open64)

#define OPENING_AT(name)                                                      \
    int name(int folder, const char *path, int flags, ...) {                  \
        va_list rest;                                                         \
        va_start(rest, flags);                                                \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                         \
        if (flags & O_CREAT && refused("create", folder, path)) return -1;    \
        return REAL(name)(folder, path, flags, mode);                         \
    }
OPENING_AT(openat)
OPENING_AT(openat64)

#define STREAMING(name)                                                              \
    FILE *name(const char *path, const char *mode) {                                 \
        if (!strchr(mode, 'r') && refused("create", AT_FDCWD, path)) return NULL;    \
        return REAL(name)(path, mode);                                               \
    }
STREAMING(fopen)
STREAMING(fopen64)

int mkdir(const char *path, mode_t mode) {
    return refused("mkdir", AT_FDCWD, path) ? -1 : REAL(mkdir)(path, mode);
}
int mkdirat(int folder, const char *path, mode_t mode) {
    return refused("mkdir", folder, path) ? -1 : REAL(mkdirat)(folder, path, mode);
}
int rename(const char *old, const char *path) {
    return refused("rename", AT_FDCWD, path) ? -1 : REAL(rename)(old, path);
}
int renameat(int source, const char *old, int folder, const char *path) {
    return refused("rename", folder, path) ? -1 : REAL(renameat)(source, old, folder, path);
}
ssize_t write(int descriptor, const void *data, size_t size) {
    return refused_open("write", descriptor) ? -1 : REAL(write)(descriptor, data, size);
}
ssize_t writev(int descriptor, const struct iovec *data, int count) {
    return refused_open("write", descriptor) ? -1 : REAL(writev)(descriptor, data, count);
}
ssize_t pwrite(int descriptor, const void *data, size_t size, off_t at) {
    return refused_open("write", descriptor) ? -1 : REAL(pwrite)(descriptor, data, size, at);
}
ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t at) {
    return refused_open("write", descriptor) ? -1 : REAL(pwrite64)(descriptor, data, size, at);
}
int ftruncate64(int descriptor, off64_t size) {
    return refused_open("grow", descriptor) ? -1 : REAL(ftruncate64)(descriptor, size);
}
int fsync(int descriptor) {
    return refused_open("sync", descriptor) ? -1 : REAL(fsync)(descriptor);
}
