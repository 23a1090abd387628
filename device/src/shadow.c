/* shadow.c: small pieces of device memory whose bytes are known, because the host wrote them.
 *
 *     host writes ─▶ kept ──copy on the device──▶ kept there too
 *                     │ a kernel was given an address in it, the block was freed, something else was copied there
 *                     ▼
 *                  forgotten: reads as zero, and the read is counted with its Python line
 *
 * Which kernel writes and which only reads is not known, so what a kernel was given is forgotten:
 * a zero that is counted is honest, a stale number is not. Frameworks reuse memory without telling
 * the driver, but what they put there comes by copy, by memset or by a kernel, and all three pass
 * here. A read is true only where known bytes cover all of it.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "raw.h"

#define LARGEST (64u << 10)   /* bytes of one piece */
#define MOST (64 * HT_MIB)    /* bytes of all */
#define PIECES 16384

struct piece { uint64_t at, size, stamp; uint8_t *bytes; uint8_t fill; }; /* bytes NULL: all are `fill` */
static struct piece *pieces; /* by address; they do not overlap */
static size_t count;
static uint64_t stamps, kept_bytes;
static uint64_t lowest = UINT64_MAX, highest; /* no piece lies outside; read without the lock */
pthread_mutex_t ht_shadows_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock(void) { pthread_mutex_lock(&ht_shadows_lock); }

/* What is kept now is told behind the lock: the first to tell anything opens the device table. */
static void unlock(void) {
    static uint64_t told;
    int64_t change = (int64_t)(kept_bytes - told);
    told = kept_bytes;
    pthread_mutex_unlock(&ht_shadows_lock);
    if (change)
        ht_count_shadow(change, 0);
}

static size_t lower(uint64_t address) { /* the first piece that ends above */
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (pieces[middle].at + pieces[middle].size <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void release(struct piece *piece) {
    if (!piece->bytes)
        return;
    ht_drop(piece->bytes, piece->size);
    kept_bytes -= piece->size;
}

static void erase(size_t i) {
    release(&pieces[i]);
    memmove(&pieces[i], &pieces[i + 1], (count - i - 1) * sizeof *pieces);
    count--;
}

/* No room: the older half goes, and of what is left the lowest until it is half as much as may be. One pass from
 * the highest address down, since all who copy wait meanwhile. */
static void make_room(void) {
    uint64_t middle = stamps - count / 2, left = MOST / 2;
    size_t first = count;
    for (size_t i = count; i-- > 0;) {
        uint64_t size = pieces[i].bytes ? pieces[i].size : 0;
        if (pieces[i].stamp < middle || size > left) {
            release(&pieces[i]);
            continue;
        }
        left -= size;
        pieces[--first] = pieces[i];
    }
    count -= first;
    memmove(pieces, pieces + first, count * sizeof *pieces);
}

/* Takes over the piece's bytes. */
static void insert(struct piece piece) {
    if (!pieces && !(pieces = ht_new(PIECES * sizeof *pieces))) {
        ht_drop(piece.bytes, piece.size); /* as if it had been forgotten: a read of it is zeros, and counted */
        return;
    }
    if (count == PIECES || kept_bytes > MOST)
        make_room();
    size_t i = lower(piece.at);
    memmove(&pieces[i + 1], &pieces[i], (count - i) * sizeof *pieces);
    piece.stamp = stamps++;
    pieces[i] = piece;
    count++;
    if (piece.bytes)
        kept_bytes += piece.size;
    if (piece.at < lowest)
        __atomic_store_n(&lowest, piece.at, __ATOMIC_RELAXED);
    if (piece.at + piece.size > highest)
        __atomic_store_n(&highest, piece.at + piece.size, __ATOMIC_RELAXED);
}

/* The part of a piece in front of or behind what is written anew. */
static void keep_part(const struct piece *piece, uint64_t at, uint64_t end) {
    struct piece part = {.at = at, .size = end - at, .fill = piece->fill};
    if (at >= end)
        return;
    if (piece->bytes) {
        part.bytes = ht_new(part.size);
        if (!part.bytes)
            return;
        memcpy(part.bytes, piece->bytes + (at - piece->at), part.size);
    }
    insert(part);
}

static void forget(uint64_t at, uint64_t n) {
    size_t i;
    while ((i = lower(at)) < count && pieces[i].at < at + n) {
        struct piece old = pieces[i];
        memmove(&pieces[i], &pieces[i + 1], (count - i - 1) * sizeof *pieces);
        count--;
        if (old.at < at)
            keep_part(&old, old.at, at);
        keep_part(&old, at + n, old.at + old.size);
        release(&old);
    }
}

static void keep(uint64_t at, const void *bytes, size_t n) {
    size_t i = lower(at);
    if (i < count && pieces[i].bytes && pieces[i].at <= at && at + n <= pieces[i].at + pieces[i].size) {
        memcpy(pieces[i].bytes + (at - pieces[i].at), bytes, n); /* in place: the usual case */
        return;
    }
    forget(at, n);
    struct piece piece = {.at = at, .size = n, .bytes = ht_new(n)};
    if (!piece.bytes)
        return;
    memcpy(piece.bytes, bytes, n);
    insert(piece);
}

/* Copies known bytes; 1 if they cover all. */
static int look(uint64_t at, uint8_t *into, size_t n) {
    uint64_t end = at + n;
    for (size_t i = lower(at); at < end; i++) {
        if (i >= count || pieces[i].at > at)
            return 0;
        uint64_t from = at - pieces[i].at, part = pieces[i].size - from;
        if (part > end - at)
            part = end - at;
        if (pieces[i].bytes)
            memcpy(into, pieces[i].bytes + from, part);
        else
            memset(into, pieces[i].fill, part);
        into += part;
        at += part;
    }
    return 1;
}

static int none_near(uint64_t at, uint64_t n) {
    return at >= __atomic_load_n(&highest, __ATOMIC_RELAXED) || at + n <= __atomic_load_n(&lowest, __ATOMIC_RELAXED);
}

void ht_host_wrote(uint64_t address, const void *bytes, size_t n) {
    if (!n)
        return;
    lock();
    if (n <= LARGEST)
        keep(address, bytes, n);
    else
        forget(address, n);
    unlock();
    if (n > LARGEST)
        ht_count_shadow(0, n);
}

void ht_host_set(uint64_t address, uint8_t value, size_t n) {
    if (!n)
        return;
    lock();
    forget(address, n);
    insert((struct piece){.at = address, .size = n, .fill = value});
    unlock();
}

int ht_kept(uint64_t address, void *into, size_t n) {
    int known = 0;
    if (!none_near(address, n)) {
        lock();
        known = look(address, into, n);
        unlock();
    }
    if (!known)
        memset(into, 0, n);
    return known;
}

/* ---- what the host gets where nothing is known: zeros, or for one number the value asked for */

enum ht_number { HT_NUMBER_UNKNOWN, HT_NUMBER_OTHER, HT_NUMBER_HALF, HT_NUMBER_BFLOAT, HT_NUMBER_FLOAT, HT_NUMBER_DOUBLE };
static __thread int number_kind;

/* The agent knows the type of what it reads, the driver only its size: 0 not known, 1 no floating-point
 * number, 2 half, 3 bfloat16, 4 float, 5 double; of the calling thread, until the next call. */
HT_EXPORT void hightide_device_reads(int kind) { number_kind = kind; }

/* The agent knows how many elements an operator shall find (docs/formats/imagined.md). While `on`, a number of up to
 * 8 bytes that the calling thread reads and nobody wrote is `value`, and is not counted. 2: whatever it reads is zeros
 * and not counted, as the agent puts in its place what it has worked out. */
static __thread struct { int on; uint64_t value; } answer;
HT_EXPORT void hightide_device_answer(int on, uint64_t value) {
    answer.on = on;
    answer.value = value;
}

/* Whether all of these bytes are kept: what the host reads there is true. */
HT_EXPORT int hightide_device_known(const void *address, uint64_t n) {
    if (n > LARGEST)
        return 0;
    uint8_t bytes[LARGEST];
    return ht_kept((uint64_t)address, bytes, n);
}

/* What the agent has worked out on the host: kept as if the host had written it, also where it is large. */
HT_EXPORT void hightide_device_keep(const void *address, const void *bytes, uint64_t n) {
    if (!n || n > MOST / 2)
        return;
    lock();
    keep((uint64_t)address, bytes, n);
    unlock();
}

static double wanted; /* what the host reads of what no kernel computed */

__attribute__((constructor)) static void read_wanted(void) {
    const char *text = getenv("HIGHTIDE_DEVICE_READ_VALUE");
    wanted = text ? strtod(text, NULL) : 0;
}

static uint16_t half_of(float value) { /* of normal numbers; others become 0 or infinity */
    uint32_t bits;
    memcpy(&bits, &value, 4);
    int exponent = (int)(bits >> 23 & 255) - 127 + 15;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (exponent <= 0)
        return sign;
    if (exponent >= 31)
        return sign | 0x7c00;
    return (uint16_t)(sign | exponent << 10 | (bits >> 13 & 0x3ff));
}

static void stand_in(void *into, size_t n) {
    double value = wanted;
    float single = (float)value;
    uint32_t bits;
    if (value == 0)
        return;
    memcpy(&bits, &single, 4);
    uint16_t top = (uint16_t)(bits >> 16), half = half_of(single);
    if (n == 4 && (number_kind == HT_NUMBER_UNKNOWN || number_kind == HT_NUMBER_FLOAT))
        memcpy(into, &single, 4);
    else if (n == 8 && number_kind == HT_NUMBER_DOUBLE)
        memcpy(into, &value, 8);
    else if (n == 2 && number_kind == HT_NUMBER_BFLOAT)
        memcpy(into, &top, 2);
    else if (n == 2 && number_kind == HT_NUMBER_HALF)
        memcpy(into, &half, 2);
}

void ht_host_reads(uint64_t address, void *into, size_t n) {
    if (!n || ht_kept(address, into, n))
        return;
    if (answer.on == 2)
        return;
    if (answer.on && n <= 8) {
        memcpy(into, &answer.value, n);
        return;
    }
    stand_in(into, n);
    ht_count_read(n);
}

static __thread unsigned long writes;
unsigned long ht_writes(void) { return writes; }

void ht_written(uint64_t address, size_t n) {
    writes++;
    if (n == 0) { /* from there to the end of what is known at that address */
        ht_scan(&address, sizeof address);
        return;
    }
    if (none_near(address, n))
        return;
    lock();
    forget(address, n);
    unlock();
}

void ht_copied(uint64_t to, uint64_t from, size_t n) {
    if (!n || to == from)
        return;
    lock();
    uint8_t *bytes = n <= LARGEST ? ht_new(n) : NULL;
    if (bytes && look(from, bytes, n))
        keep(to, bytes, n);
    else
        forget(to, n);
    ht_drop(bytes, n);
    unlock();
}

/* ---- kernels */

typedef uint64_t __attribute__((may_alias, aligned(1))) any_word;
#define FOREIGN __attribute__((no_sanitize("address", "thread", "undefined"))) /* reads others' frames on purpose */

FOREIGN void ht_scan(const void *from, size_t bytes) {
    const char *at = from;
    uint64_t low = __atomic_load_n(&lowest, __ATOMIC_RELAXED), high = __atomic_load_n(&highest, __ATOMIC_RELAXED);
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t word = *(const any_word *)(at + i);
        if (word < low || word >= high)
            continue;
        lock();
        size_t found = lower(word);
        if (found < count && pieces[found].at <= word)
            erase(found);
        unlock();
    }
}

__asm__(".symver old_getattr, pthread_getattr_np@" HT_SINCE("2.2.5"));
extern int old_getattr(pthread_t, pthread_attr_t *);
__asm__(".symver old_getstack, pthread_attr_getstack@" HT_SINCE("2.2.5"));
extern int old_getstack(const pthread_attr_t *, void **, size_t *);

static const char *stack_end(void) {
    static __thread const char *end;
    pthread_attr_t attributes;
    void *base;
    size_t size;
    if (!end && old_getattr(pthread_self(), &attributes) == 0) {
        end = (const char *)1;
        if (old_getstack(&attributes, &base, &size) == 0)
            end = (const char *)base + size;
        pthread_attr_destroy(&attributes);
    }
    return end;
}

#define PARAMETERS 4608 /* bytes: a kernel takes at most 4 KiB, and the compiler puts them in one frame */

/* Of a launcher that keeps its array elsewhere than on the stack, as XLA's does: as many words as what the array points to
 * lies near it and can be read. There may be more than parameters: what lies behind the array. */
FOREIGN size_t ht_arguments(void **arguments, uint64_t *into, size_t room) {
    enum { FEWEST = 2, NEAR = 64 << 20 }; /* NEAR: of the same thread's heap */
    size_t n = 0;
    for (; arguments && n < room && sys_readable(arguments + n); n++) {
        const char *at = arguments[n];
        ptrdiff_t away = at - (const char *)arguments;
        if (!at || (n >= FEWEST && (away < -NEAR || away > NEAR)) || !sys_readable(at))
            break;
        into[n] = *(const any_word *)at;
    }
    return n;
}

/* A launch gives an array of addresses, one for each parameter, without their number or sizes. Both
 * lie in the frame of the compiled launcher, with the parameters above or a little below the array. */
FOREIGN void ht_scan_arguments(void **arguments) {
    const char *from = (const char *)arguments, *here = __builtin_frame_address(0), *end = stack_end();
    if (!arguments || !__atomic_load_n(&highest, __ATOMIC_RELAXED))
        return;
    if (from < here || from >= end) {
        uint64_t words[HT_MOST_ARGUMENTS];
        ht_scan(words, 8 * ht_arguments(arguments, words, HT_MOST_ARGUMENTS));
        return;
    }
    const char *low = from;
    for (int i = 0; i < 8; i++) {
        const char *at = (const char *)(arguments + i) < end - 8 ? arguments[i] : NULL;
        if (at >= here && at < end && at < low)
            low = at;
    }
    low = (const char *)((uintptr_t)low & ~7ull);
    size_t bytes = (size_t)(end - low);
    ht_scan(low, bytes < PARAMETERS ? bytes : PARAMETERS);
}
