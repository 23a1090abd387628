/* cufile.c: cuFile: files read into device memory and written from it. Without a device to copy to, what happens
 * is what the host would see. Small parts of a file are known afterwards, larger ones are as if a kernel had written
 * them. What is written to a file is what is known of the memory, else zeros, which is counted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "abi.h"
#include "raw.h"

/* A status is two words in one register: the library's own, from 5000 on, and the driver's. */
struct cufile_status { int error, driver; };
enum { CUFILE_OK = 0, CUFILE_INVALID_VALUE = 5022 };
#define FILE_MAGIC 0x656c696663686974ull
#define KNOWN (64u << 10) /* bytes that are worth keeping */
#define PIECE (1u << 20)

struct file { HT_HANDLE; int fd; };

static struct cufile_status status(int error) { return (struct cufile_status){error, 0}; }

HT_EXPORT struct cufile_status cuFileDriverOpen(void) { return status(CUFILE_OK); }
HT_EXPORT struct cufile_status cuFileDriverClose(void) { return status(CUFILE_OK); }
HT_EXPORT struct cufile_status cuFileDriverClose_v2(void) { return status(CUFILE_OK); }
HT_EXPORT long cuFileUseCount(void) { return 1; }

HT_EXPORT struct cufile_status cuFileHandleRegister(void **handle, const struct cufile_descr *what) {
    const int by_descriptor = 1;
    struct file *file = handle && what && what->type == by_descriptor && what->fd >= 0 ? ht_new(sizeof *file) : NULL;
    if (!file)
        return status(CUFILE_INVALID_VALUE);
    *file = (struct file){FILE_MAGIC, what->fd};
    *handle = file;
    return status(CUFILE_OK);
}
HT_EXPORT void cuFileHandleDeregister(void *handle) {
    if (ht_is(handle, FILE_MAGIC))
        ht_drop(handle, sizeof(struct file));
}
HT_EXPORT struct cufile_status cuFileBufRegister(const void *at, size_t n, int flags) {
    (void)n, (void)flags;
    return status(at ? CUFILE_OK : CUFILE_INVALID_VALUE);
}
HT_EXPORT struct cufile_status cuFileBufDeregister(const void *at) { return status(at ? CUFILE_OK : CUFILE_INVALID_VALUE); }

static ssize_t from_file(int fd, char *to, size_t n, off_t offset) {
    char bytes[KNOWN];
    if (!ht_on_device(to))
        return pread(fd, to, n, offset);
    off_t size = lseek(fd, 0, SEEK_END);
    size_t there = size > offset ? (size_t)(size - offset) : 0;
    if (n > there)
        n = there;
    if (n > KNOWN) {
        ht_written((uint64_t)to, n);
        return (ssize_t)n;
    }
    ssize_t got = pread(fd, bytes, n, offset);
    if (got > 0)
        ht_host_wrote((uint64_t)to, bytes, (size_t)got);
    return got;
}

static ssize_t to_file(int fd, const char *from, size_t n, off_t offset) {
    static const char zeros[PIECE];
    char bytes[KNOWN];
    if (!ht_on_device(from))
        return pwrite(fd, from, n, offset);
    if (n <= KNOWN) {
        ht_host_reads((uint64_t)from, bytes, n);
        return pwrite(fd, bytes, n, offset);
    }
    ht_count_read(n);
    for (size_t done = 0; done < n;) {
        ssize_t put = pwrite(fd, zeros, n - done < PIECE ? n - done : PIECE, offset + (off_t)done);
        if (put < 0)
            return done ? (ssize_t)done : put;
        done += (size_t)put;
    }
    return (ssize_t)n;
}

/* -1 with errno for the system's errors, the negative of the library's own else. */
typedef ssize_t (*transfer)(int, char *, size_t, off_t);
static ssize_t move(transfer move_it, void *handle, void *at, size_t n, off_t offset, off_t at_offset) {
    struct file *file = ht_is(handle, FILE_MAGIC) ? handle : NULL;
    return file && at ? move_it(file->fd, (char *)at + at_offset, n, offset) : -CUFILE_INVALID_VALUE;
}
static ssize_t writes(int fd, char *at, size_t n, off_t offset) { return to_file(fd, at, n, offset); }

HT_EXPORT ssize_t cuFileRead(void *handle, void *at, size_t n, off_t offset, off_t at_offset) {
    return move(from_file, handle, at, n, offset, at_offset);
}
HT_EXPORT ssize_t cuFileWrite(void *handle, const void *at, size_t n, off_t offset, off_t at_offset) {
    return move(writes, handle, (void *)at, n, offset, at_offset);
}

static struct cufile_status move_now(transfer how, void *handle, void *at, const size_t *n, const off_t *offset, const off_t *at_offset, ssize_t *done) {
    if (!n || !offset || !at_offset || !done)
        return status(CUFILE_INVALID_VALUE);
    *done = move(how, handle, at, *n, *offset, *at_offset);
    return status(*done == -CUFILE_INVALID_VALUE ? CUFILE_INVALID_VALUE : CUFILE_OK);
}
HT_EXPORT struct cufile_status cuFileReadAsync(void *handle, void *at, size_t *n, off_t *offset, off_t *at_offset, ssize_t *done, void *stream) {
    (void)stream; /* work is done when it is given */
    return move_now(from_file, handle, at, n, offset, at_offset, done);
}
HT_EXPORT struct cufile_status cuFileWriteAsync(void *handle, void *at, size_t *n, off_t *offset, off_t *at_offset, ssize_t *done, void *stream) {
    (void)stream;
    return move_now(writes, handle, at, n, offset, at_offset, done);
}
HT_EXPORT struct cufile_status cuFileStreamRegister(void *stream, unsigned flags) { (void)stream, (void)flags; return status(CUFILE_OK); }
HT_EXPORT struct cufile_status cuFileStreamDeregister(void *stream) { (void)stream; return status(CUFILE_OK); }
