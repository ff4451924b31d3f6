// A disk that fails when a file says so, for one process that loads this first and for those it starts. Only files below one
// folder are on it. Its first byte: full, so that no file gets longer. Its second: nothing can be made to last. Linux.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static volatile const char *told;
static const char *below;

__attribute__((constructor)) static void look(void) {
    const char *path = getenv("FAULTY_DISK_TOLD");
    below = getenv("FAULTY_DISK_BELOW");
    int file = path && below ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *at = mmap(NULL, 2, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (at != MAP_FAILED) told = at;
}

static int is_on_it(int file) {
    char link[32], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strncmp(path, below, strlen(below)) == 0;
}

static int has_no_room(int file, off_t end) {
    struct stat now;
    return told && told[0] && is_on_it(file) && fstat(file, &now) == 0 && S_ISREG(now.st_mode) && end > now.st_size;
}

static ssize_t no_room(void) {
    errno = ENOSPC;
    return -1;
}

static size_t sum(const struct iovec *parts, int count) {
    size_t bytes = 0;
    for (int at = 0; at < count; at++) bytes += parts[at].iov_len;
    return bytes;
}

ssize_t write(int file, const void *from, size_t bytes) {
    if (told && told[0]) {
        int appends = (fcntl(file, F_GETFL) & O_APPEND) != 0;
        off_t at = lseek(file, 0, SEEK_CUR);
        struct stat now;
        if (appends && fstat(file, &now) == 0) at = now.st_size;
        if (at >= 0 && has_no_room(file, at + (off_t)bytes)) return no_room();
    }
    return syscall(SYS_write, file, from, bytes);
}

ssize_t pwrite(int file, const void *from, size_t bytes, off_t at) {
    return has_no_room(file, at + (off_t)bytes) ? no_room() : syscall(SYS_pwrite64, file, from, bytes, at);
}

ssize_t pwrite64(int file, const void *from, size_t bytes, off_t at) {
    return pwrite(file, from, bytes, at);
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) {
    if (has_no_room(file, at + (off_t)sum(parts, count))) return no_room();
    return syscall(SYS_pwritev, file, parts, count, at, 0);
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off_t at) {
    return pwritev(file, parts, count, at);
}

int posix_fallocate(int file, off_t at, off_t bytes) {
    if (has_no_room(file, at + bytes)) return ENOSPC;
    return syscall(SYS_fallocate, file, 0, at, bytes) == 0 ? 0 : errno;
}

int posix_fallocate64(int file, off_t at, off_t bytes) {
    return posix_fallocate(file, at, bytes);
}

static int lasts(int file, long call) {
    if (told && told[1] && is_on_it(file)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(call, file);
}

int fsync(int file) {
    return lasts(file, SYS_fsync);
}

int fdatasync(int file) {
    return lasts(file, SYS_fdatasync);
}
