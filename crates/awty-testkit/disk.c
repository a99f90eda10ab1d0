/* A preloaded library that makes the server's disk fail or slow when a test wants it. Writes and flushes of the server's files
 * fail in all server processes at once, and the library counts the failed calls. It can also make each flush of WAL slow, and
 * counts the slow flushes.
 *
 * A small file system could make writes fail, but only root can mount one, and it would not make fsync fail.
 *
 * A flush that does not fail does nothing, so a server with fsync on is as fast as with fsync off. Tests kill processes and never
 * the machine, so the kernel keeps written data. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* These numbers must match `DiskFault` in src/disk.rs. */
enum { WRITE_WAL = 1, WRITE_TABLES = 2, WRITE_REST = 4, FLUSH_WAL = 8, FLUSH_DATA = 16 };
enum { WRITE = WRITE_WAL | WRITE_TABLES | WRITE_REST, FLUSH = FLUSH_WAL | FLUSH_DATA };

/* `slow` is the microseconds that each flush of WAL takes, and `flushed` counts the slow flushes. */
static struct { volatile int64_t fails, refused, slow, flushed; } *disk;

__attribute__((constructor)) static void find_file(void)
{
    const char *name = getenv("AWTY_DISK");
    int file = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *disk, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    if (mapped != MAP_FAILED)
        disk = mapped;
    if (file >= 0)
        close(file);
}

/* Finds the path of an open file. Returns whether the file is in the data directory, unlike sockets, pipes and the log. */
static int path_of(int file, char *path, size_t size)
{
    char link[64];
    ssize_t length;

    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    length = readlink(link, path, size - 1);
    if (length < 0)
        return 0;
    path[length] = '\0';
    return strstr(path, "/data/") != NULL;
}

/* Returns whether this call on this file must fail: the file may be WAL, a table, or other data of the server. */
static int refuses(int file, int call)
{
    int64_t fails = disk ? disk->fails & call : 0;
    char path[4096];

    if (!fails || !path_of(file, path, sizeof path))
        return 0;
    if (strstr(path, "/pg_wal/"))
        fails &= WRITE_WAL | FLUSH_WAL;
    else if (strstr(path, "/data/base/"))
        fails &= WRITE_TABLES | FLUSH_DATA;
    else if (strstr(path, "/data/global/") || strstr(path, "/data/pg_"))
        fails &= WRITE_REST | FLUSH_DATA;
    else
        return 0;
    if (fails)
        __atomic_fetch_add(&disk->refused, 1, __ATOMIC_RELAXED);
    return fails != 0;
}

#define REAL(name) ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *from, size_t size)
{
    static ssize_t (*real)(int, const void *, size_t);

    if (refuses(file, WRITE))
        return errno = ENOSPC, -1;
    if (!real)
        real = REAL(write);
    return real(file, from, size);
}

ssize_t pwrite(int file, const void *from, size_t size, off_t at)
{
    static ssize_t (*real)(int, const void *, size_t, off_t);

    if (refuses(file, WRITE))
        return errno = ENOSPC, -1;
    if (!real)
        real = REAL(pwrite);
    return real(file, from, size, at);
}

ssize_t pwritev(int file, const struct iovec *from, int count, off_t at)
{
    static ssize_t (*real)(int, const struct iovec *, int, off_t);

    if (refuses(file, WRITE))
        return errno = ENOSPC, -1;
    if (!real)
        real = REAL(pwritev);
    return real(file, from, count, at);
}

int posix_fallocate(int file, off_t at, off_t size)
{
    static int (*real)(int, off_t, off_t);

    if (refuses(file, WRITE))
        return ENOSPC;
    if (!real)
        real = REAL(posix_fallocate);
    return real(file, at, size);
}

int fsync(int file)
{
    char path[4096];
    int64_t slow = disk ? disk->slow : 0;

    if (slow && path_of(file, path, sizeof path) && strstr(path, "/pg_wal/")) {
        usleep(slow);
        __atomic_fetch_add(&disk->flushed, 1, __ATOMIC_RELAXED);
    }
    return refuses(file, FLUSH) ? (errno = EIO, -1) : 0;
}

int fdatasync(int file)
{
    return fsync(file);
}

int sync_file_range(int file, off_t at, off_t size, unsigned int how)
{
    (void) file, (void) at, (void) size, (void) how;
    return 0;
}
