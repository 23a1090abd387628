/* tablefile.c: the file that is the device table: made whole under another name, then renamed to where none is, so
 * that nobody sees half of it. Without a path, or where it cannot be used, a process keeps a table of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "table.h"

#define DEFAULT_SPEC "count=1;name=Imaginary GPU"

static uint64_t file_bytes(void) {
    return sizeof(struct ht_gpu_header) + HT_GPU_DEVICES * sizeof(struct ht_gpu) +
           (uint64_t)HT_GPU_SLOTS * sizeof(struct ht_gpu_process);
}

static void write_header(struct ht_gpu_header *header, const char *spec) {
    struct ht_gpu *gpus = (struct ht_gpu *)(header + 1);
    if (!ht_spec_read(spec, header, gpus))
        ht_spec_read(DEFAULT_SPEC, header, gpus);
    header->abi = HT_GPU_ABI;
    header->header_bytes = sizeof *header;
    header->device_bytes = sizeof(struct ht_gpu);
    header->slot_count = HT_GPU_SLOTS;
    header->slot_bytes = sizeof(struct ht_gpu_process);
    header->devices_at = sizeof *header;
    header->slots_at = sizeof *header + HT_GPU_DEVICES * sizeof(struct ht_gpu);
    header->total_bytes = file_bytes();
    header->created_mono_ns = ht_now();
    header->created_wall_ns = ht_clock(CLOCK_REALTIME);
    snprintf(header->spec, sizeof header->spec, "%s", spec);
    __atomic_store_n(&header->magic, HT_GPU_MAGIC, __ATOMIC_RELEASE);
}

static void *map(int fd, int flags) {
    long at = sys_mmap(NULL, file_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);
    return sys_failed(at) ? NULL : (void *)at;
}

/* A finished table under another name, then renamed where none is: who comes second uses the first's. Where there is
 * no room for one it stays empty, which tells the engine. 0, or -errno. */
static long make_file(const char *path, const char *spec) {
    char draft[512];
    if ((size_t)snprintf(draft, sizeof draft, "%s.%ld", path, sys_getpid()) >= sizeof draft)
        return -ENAMETOOLONG;
    long fd = sys_open(draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return fd;
    uint64_t front = sizeof(struct ht_gpu_header) + HT_GPU_DEVICES * sizeof(struct ht_gpu);
    struct ht_gpu_header *header = NULL;
    long failed = sys_truncate((int)fd, file_bytes());
    if (!failed)
        failed = sys_allocate((int)fd, front);
    if (!failed)
        header = map((int)fd, 0);
    if (header) {
        write_header(header, spec);
        sys_munmap(header, file_bytes());
    } else {
        sys_truncate((int)fd, 0);
    }
    sys_close((int)fd);
    sys_rename_new(draft, path);
    sys_unlink(draft);
    return failed;
}

int ht_own_file(int fd) {
    struct stat file; /* as the kernel writes it: libc's own call is newer than GLIBC_2.17 */
    return sys6(SYS_fstat, fd, (long)&file, 0, 0, 0, 0) == 0 && S_ISREG(file.st_mode) && (file.st_mode & 022) == 0 &&
           file.st_uid == (uid_t)sys6(SYS_geteuid, 0, 0, 0, 0, 0, 0);
}

static int fits(const struct ht_gpu_header *header) {
    return __atomic_load_n(&header->magic, __ATOMIC_ACQUIRE) == HT_GPU_MAGIC && header->abi == HT_GPU_ABI &&
           header->total_bytes == file_bytes() && header->device_count - 1 < HT_GPU_DEVICES;
}

/* NULL: there is none, or none that can be used; `failed` says why, where that is known. */
static struct ht_gpu_header *open_file(const char *path, long *failed) {
    long fd = sys_open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0) {
        *failed = fd == -ENOENT ? *failed : fd;
        return NULL;
    }
    struct ht_gpu_header *header = NULL;
    if (!ht_own_file((int)fd))
        *failed = -EPERM;
    else if (sys6(SYS_lseek, fd, 0, 2 /* SEEK_END */, 0, 0, 0) >= (long)file_bytes())
        header = map((int)fd, 0);
    sys_close((int)fd);
    if (header && !fits(header)) {
        sys_munmap(header, file_bytes());
        return NULL;
    }
    return header;
}

/* 0, or -ENAMETOOLONG: a folder cut short is another one. */
static long folder_of(const char *path, char *into, size_t room) {
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n >= room)
        return -ENAMETOOLONG;
    memcpy(into, path, n);
    into[n] = 0;
    return 0;
}

struct ht_gpu_header *ht_table_open(char *folder, size_t room) {
    const char *path = getenv("HIGHTIDE_DEVICE_TABLE"), *spec = getenv("HIGHTIDE_DEVICE_SPEC");
    if (!spec || !*spec)
        spec = DEFAULT_SPEC;
    struct ht_gpu_header *header = NULL;
    if (path && *path) {
        long failed = folder_of(path, folder, room);
        if (!failed)
            header = open_file(path, &failed);
        if (!header && !failed) {
            failed = make_file(path, spec);
            header = open_file(path, &failed);
        }
        if (!header)
            fprintf(stderr, "hightide: the device table (%s) cannot be used%s%s; this process keeps its own\n",
                    path, failed ? ": " : "", failed ? strerror((int)-failed) : "");
    }
    if (!header && (header = map(-1, MAP_ANONYMOUS | MAP_NORESERVE)))
        write_header(header, spec);
    return header;
}
