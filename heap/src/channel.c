#define _GNU_SOURCE
#include "channel.h"

#include <sys/mman.h>

#include "../../common/sys.h"

/* folder/heap-PID-START[-N].ring[.new]; 0 if it did not fit. */
static int name(char *into, size_t size, const char *folder, uint64_t start, unsigned n, const char *ending) {
    char *end = into + size - 1, *at = ht_put_text(into, end, folder);
    at = ht_put_number(ht_put_text(at, end, "/heap-"), end, (uint64_t)sys_getpid());
    at = ht_put_number(ht_put_text(at, end, "-"), end, start);
    if (n > 1)
        at = ht_put_number(ht_put_text(at, end, "-"), end, n);
    at = ht_put_text(at, end, ending);
    *at = 0;
    return at < end;
}

static long map(struct ht_channel *channel, int fd, uint32_t ring_bytes, void *at) {
    size_t bytes = HT_HEADER_BYTES + ring_bytes;
    if (sys_file_limit() < bytes)
        return -EFBIG;
    long result = sys_fchmod(fd, 0600); /* the program's umask may have taken our own right to read */
    if (result == 0)
        result = sys_allocate(fd, bytes);
    if (result < 0)
        return result;
    result = sys_mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);
    if (sys_failed(result))
        return result;
    channel->header = (struct ht_header *)result;
    channel->ring = (unsigned char *)result + HT_HEADER_BYTES;
    channel->mapped = bytes;
    return 0;
}

static void fill(struct ht_header *header, uint64_t start, uint32_t ring_bytes) {
    header->abi = HT_CHANNEL_ABI;
    header->role = HT_ROLE_HEAP;
    header->pid = (uint32_t)sys_getpid();
    header->header_bytes = HT_HEADER_BYTES;
    header->process_start = start;
    header->ring_bytes = ring_bytes;
    header->created_mono_ns = ht_clock(CLOCK_MONOTONIC);
    header->created_wall_ns = ht_clock(CLOCK_REALTIME);
    header->state = HT_STATE_OPEN;
    __atomic_store_n(&header->magic, HT_CHANNEL_MAGIC, __ATOMIC_RELEASE);
}

long ht_channel_open(struct ht_channel *channel, const char *folder, uint32_t ring_bytes, void *at) {
    char fresh[512], final[512];
    uint64_t start = ht_started(0);
    if (start == HT_START_UNKNOWN)
        start = 0;
    for (unsigned n = 1; n <= 1000; n++) { /* every exec of this process took a name */
        if (!name(final, sizeof final, folder, start, n, ".ring") ||
            !name(fresh, sizeof fresh, folder, start, n, ".ring.new"))
            return -ENAMETOOLONG;
        if (sys_exists(final))
            continue;
        long fd = sys_open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd == -EEXIST)
            continue;
        if (fd < 0)
            return fd;
        long result = map(channel, (int)fd, ring_bytes, at);
        sys_close((int)fd);
        if (result == 0) {
            fill(channel->header, start, ring_bytes);
            result = sys_rename_new(fresh, final);
        }
        if (result < 0)
            sys_unlink(fresh);
        return result;
    }
    return -EEXIST;
}

void ht_channel_drop(struct ht_channel *channel, uint32_t bytes) {
    __atomic_fetch_add(&channel->header->dropped_records, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&channel->header->dropped_bytes, bytes, __ATOMIC_RELAXED);
}

int ht_channel_room(const struct ht_channel *channel, uint32_t bytes, uint32_t spare) {
    const struct ht_header *header = channel->header;
    uint64_t head = __atomic_load_n(&header->head, __ATOMIC_RELAXED);
    uint64_t tail = __atomic_load_n(&header->tail, __ATOMIC_ACQUIRE);
    /* A record may have to be preceded by a pad of nearly its own size. */
    return head - tail + 2ull * bytes + spare <= channel->mapped - HT_HEADER_BYTES;
}

struct ht_record *ht_channel_reserve(struct ht_channel *channel, uint32_t bytes, uint32_t spare) {
    struct ht_header *header = channel->header;
    uint64_t ring_bytes = channel->mapped - HT_HEADER_BYTES; /* not header->ring_bytes: shared, so not to be trusted */
    uint64_t head = __atomic_load_n(&header->head, __ATOMIC_RELAXED), pad;
    do {
        uint64_t tail = __atomic_load_n(&header->tail, __ATOMIC_ACQUIRE);
        uint64_t left = ring_bytes - (head & (ring_bytes - 1));
        pad = left < bytes ? left : 0;
        if (head - tail + pad + bytes + spare > ring_bytes) {
            ht_channel_drop(channel, bytes);
            return NULL;
        }
    } while (!__atomic_compare_exchange_n(&header->head, &head, head + pad + bytes, 1, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED));
    if (pad) {
        struct ht_record *filler = (struct ht_record *)(channel->ring + (head & (ring_bytes - 1)));
        filler->kind = HT_PAD;
        filler->aux = 0;
        __atomic_store_n(&filler->bytes, (uint32_t)pad, __ATOMIC_RELEASE);
    }
    struct ht_record *record = (struct ht_record *)(channel->ring + ((head + pad) & (ring_bytes - 1)));
    __atomic_store_n(&record->bytes, bytes | HT_BUSY, __ATOMIC_RELAXED);
    return record;
}

void ht_channel_commit(struct ht_record *record, uint32_t bytes) {
    __atomic_store_n(&record->bytes, bytes, __ATOMIC_RELEASE);
}
