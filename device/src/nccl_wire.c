/* nccl_wire.c: small values between the ranks of a communicator that run on this machine.
 *
 * One file in the run's folder of shared memory per communicator, sparse:
 *
 *     [ head ][ seat 0 ][ seat 1 ] ... [ rank 0: 2 parts ][ rank 1: 2 parts ] ... [ 0→0 ][ 0→1 ] ... mailboxes
 *
 * A page that has no memory yet is never touched: where shared memory is full that would be a SIGBUS. Head and seats
 * get theirs when a rank comes, a part or a letter when its writer needs it, a mailbox's first page by either side.
 * Zeros are its beginning, so whoever comes first makes it and nobody waits at opening; the last to
 * leave removes it, once all have come. A round's part goes to the buffer of the round's parity: who is at round r+2 has
 * seen every rank at r+1, and so nobody reads round r any more. Of ranks that were killed the file remains; the next
 * communicator that is made in the folder removes it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "table.h"
#include "nccl.h"

#define PAGE 4096ull
#define LETTERS 64 /* of one mailbox */
#define RANKS 256
#define PATIENCE_NS 50000000ll

struct part { uint64_t round_plus_one; uint32_t bytes, known; };
struct who { uint32_t pid, start; }; /* with the start of the process, as pids are given again */
struct seat { /* a page each */
    uint32_t changed, left; /* changed: a futex, counts what this rank put up */
    struct who who;         /* pid 0: has not come yet */
    struct part parts[2];
};
struct head { uint32_t users, joined, n, magic; };
#define HEAD_MAGIC 0x6c63636eu
struct letter { uint32_t bytes, known, room; }; /* room: its writer's, bytes that have memory */
struct box { /* a page; letters follow */
    uint32_t written, read; /* futexes; letters so far */
    struct letter letters[LETTERS];
};

#define PARTS_BYTES (2 * (uint64_t)NCCL_SMALL)
#define BOX_BYTES (PAGE + LETTERS * (uint64_t)NCCL_SMALL)

struct wire {
    char *map;
    uint64_t bytes;
    int n, rank, file, left;
    size_t room[2];                       /* bytes of this rank's parts that have memory */
    uint8_t in[RANKS / 8], out[RANKS / 8]; /* mailboxes from and to a rank whose first page has */
    char path[500]; /* a folder of the table has at most 400 */
};

static struct seat *seat(struct wire *wire, int rank) { return (struct seat *)(wire->map + PAGE + (uint64_t)rank * PAGE); }
static char *part_data(struct wire *wire, int rank, uint64_t round) {
    return wire->map + PAGE + (uint64_t)wire->n * PAGE + (uint64_t)rank * PARTS_BYTES + (round & 1) * NCCL_SMALL;
}
static struct box *box(struct wire *wire, int from, int to) {
    uint64_t first = PAGE + (uint64_t)wire->n * (PAGE + PARTS_BYTES);
    return (struct box *)(wire->map + first + ((uint64_t)from * (uint64_t)wire->n + (uint64_t)to) * BOX_BYTES);
}
static char *box_data(struct box *box, uint32_t letter) { return (char *)box + PAGE + (uint64_t)(letter % LETTERS) * NCCL_SMALL; }

static void sleep_on(uint32_t *word, uint32_t seen) {
    struct timespec patience = {0, PATIENCE_NS};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &patience, NULL, 0);
}
static void wake(uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, 1 << 30, NULL, NULL, 0); }

static int gone(struct wire *wire, int rank) {
    struct seat *theirs = seat(wire, rank);
    struct who who = {__atomic_load_n(&theirs->who.pid, __ATOMIC_ACQUIRE), theirs->who.start};
    if (__atomic_load_n(&theirs->left, __ATOMIC_ACQUIRE))
        return 1;
    return who.pid && !ht_lives(who.pid, who.start);
}

/* Who opens a communicator's file holds a shared lock on it until it closes it or dies; who removes one that was
 * abandoned holds it alone. So a name is never taken from ranks that are just coming, and who opened a file
 * whose name has gone meanwhile begins anew. Where files cannot be locked, none is removed early. */
static int leads_to(const char *path, int file) {
    struct stat here, there; /* libc's own calls are newer than GLIBC_2.17 */
    return syscall(SYS_fstat, file, &here) == 0 && syscall(SYS_newfstatat, AT_FDCWD, path, &there, 0) == 0 &&
           here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

static int open_shared(const char *path) {
    for (;;) {
        int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (file < 0)
            return -1;
        if (!ht_own_file(file)) {
            close(file);
            errno = EPERM;
            return -1;
        }
        while (flock(file, LOCK_SH) != 0 && errno == EINTR)
            ;
        if (leads_to(path, file))
            return file;
        close(file);
    }
}

/* Whether a communicator's file, which nobody else has open, has had ranks, and all of them are gone: one that
 * closed it and lives may have left letters in it. */
static int abandoned(int file) {
    struct head head = {0};
    struct who who;
    int alive = 0, ours = pread(file, &head, sizeof head, 0) == sizeof head && head.magic == HEAD_MAGIC && head.joined && head.n <= RANKS;
    for (uint32_t i = 0; ours && i < head.n && !alive; i++) {
        off_t at = (off_t)(PAGE + i * PAGE + offsetof(struct seat, who));
        alive = pread(file, &who, sizeof who, at) == sizeof who && who.pid && ht_lives(who.pid, who.start);
    }
    return ours && !alive;
}

static void remove_abandoned(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); /* a pipe of somebody's would never open */
    if (file < 0)
        return;
    if (ht_own_file(file) && flock(file, LOCK_EX | LOCK_NB) == 0 && abandoned(file) && leads_to(path, file))
        unlink(path);
    close(file);
}

static void reap(const char *folder, const char *prefix) {
    DIR *files = opendir(folder);
    char path[700];
    for (struct dirent *file; files && (file = readdir(files));) {
        if (strncmp(file->d_name, prefix, strlen(prefix)) != 0)
            continue;
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, file->d_name) < sizeof path)
            remove_abandoned(path);
    }
    if (files)
        closedir(files);
}

static void *map_file(struct wire *wire) {
    if (wire->file < 0 || ftruncate(wire->file, (off_t)wire->bytes) != 0)
        return NULL;
    void *map = mmap(NULL, wire->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, wire->file, 0);
    if (map == MAP_FAILED)
        return NULL;
    if (sys_populate(map, PAGE + (uint64_t)wire->n * PAGE) == 0)
        return map;
    munmap(map, wire->bytes);
    errno = ENOSPC;
    return NULL;
}

static __thread char trouble[640];

static void tell(const char *path, int error) {
    const char *hint = error == ENOSPC ? ". Shared memory is full: give it more room (docker run --shm-size)" : "";
    snprintf(trouble, sizeof trouble, "hightide: %s: %s%s", path, strerror(error), hint);
    ht_say("nccl: %s", trouble);
}

const char *ht_wire_trouble(void) { return trouble; }

struct wire *ht_wire_open(const uint64_t name[2], int n, int rank) {
    const char *folder = ht_shared_folder();
    struct wire *wire = n > 0 && n <= RANKS && rank >= 0 && rank < n ? ht_new(sizeof *wire) : NULL;
    if (!wire)
        return NULL;
    const char *prefix = *folder ? "nccl-" : "hightide-nccl-"; /* NCCL itself has nccl-* there */
    if (!*folder)
        folder = "/dev/shm";
    reap(folder, prefix);
    size_t length = (size_t)snprintf(wire->path, sizeof wire->path, "%s/%s%016llx%016llx", folder, prefix,
                                     (unsigned long long)name[0], (unsigned long long)name[1]);
    wire->n = n;
    wire->rank = rank;
    wire->bytes = PAGE + (uint64_t)n * (PAGE + PARTS_BYTES) + (uint64_t)n * (uint64_t)n * BOX_BYTES;
    errno = ENAMETOOLONG; /* cut short it would be the file of others */
    wire->file = length < sizeof wire->path ? open_shared(wire->path) : -1;
    void *map = map_file(wire);
    if (!map) {
        tell(wire->path, errno);
        if (wire->file >= 0)
            close(wire->file);
        ht_drop(wire, sizeof *wire);
        return NULL;
    }
    wire->map = map;
    __atomic_store_n(&((struct head *)map)->n, (uint32_t)n, __ATOMIC_RELEASE);
    __atomic_store_n(&((struct head *)map)->magic, HEAD_MAGIC, __ATOMIC_RELEASE);
    __atomic_add_fetch(&((struct head *)map)->users, 1, __ATOMIC_ACQ_REL);
    __atomic_add_fetch(&((struct head *)map)->joined, 1, __ATOMIC_ACQ_REL);
    seat(wire, rank)->who.start = (uint32_t)ht_process_start();
    __atomic_store_n(&seat(wire, rank)->who.pid, (uint32_t)getpid(), __ATOMIC_RELEASE);
    wake(&seat(wire, rank)->changed);
    return wire;
}

void ht_wire_leave(struct wire *wire) {
    if (!wire || wire->left)
        return;
    struct seat *mine = seat(wire, wire->rank);
    struct head *head = (struct head *)wire->map;
    wire->left = 1;
    __atomic_store_n(&mine->left, 1, __ATOMIC_RELEASE);
    __atomic_add_fetch(&mine->changed, 1, __ATOMIC_RELEASE);
    wake(&mine->changed);
    if (__atomic_sub_fetch(&head->users, 1, __ATOMIC_ACQ_REL) == 0 && head->joined >= (uint32_t)wire->n)
        unlink(wire->path); /* with ranks still to come it stays: there may be letters for them */
}

void ht_wire_close(struct wire *wire) {
    if (!wire)
        return;
    ht_wire_leave(wire);
    munmap(wire->map, wire->bytes);
    close(wire->file);
    ht_drop(wire, sizeof *wire);
}

static int no_room(const struct wire *wire) {
    tell(wire->path, ENOSPC);
    return WIRE_FULL;
}

int ht_wire_put(struct wire *wire, uint64_t round, const void *bytes, size_t n, int known) {
    struct seat *mine = seat(wire, wire->rank);
    struct part *part = &mine->parts[round & 1];
    char *data = part_data(wire, wire->rank, round);
    size_t *room = &wire->room[round & 1];
    if (known && n > *room) {
        if (sys_populate(data, n) != 0)
            return no_room(wire);
        *room = n;
    }
    if (known && n)
        memcpy(data, bytes, n);
    part->bytes = (uint32_t)n;
    part->known = (uint32_t)known;
    __atomic_store_n(&part->round_plus_one, round + 1, __ATOMIC_RELEASE);
    __atomic_add_fetch(&mine->changed, 1, __ATOMIC_RELEASE);
    wake(&mine->changed);
    return 0;
}

int ht_wire_get(struct wire *wire, uint64_t round, int rank, void *into, size_t n, const int *stop) {
    struct seat *theirs = seat(wire, rank);
    struct part *part = &theirs->parts[round & 1];
    for (;;) {
        uint32_t seen = __atomic_load_n(&theirs->changed, __ATOMIC_ACQUIRE);
        if (__atomic_load_n(&part->round_plus_one, __ATOMIC_ACQUIRE) == round + 1)
            break;
        int dead = gone(wire, rank);
        if (__atomic_load_n(&part->round_plus_one, __ATOMIC_ACQUIRE) == round + 1)
            break; /* put up, then left */
        if (dead || __atomic_load_n(stop, __ATOMIC_ACQUIRE))
            return WIRE_GONE;
        sleep_on(&theirs->changed, seen);
    }
    if (!part->known || part->bytes < n)
        return 0;
    memcpy(into, part_data(wire, rank, round), n);
    return 1;
}

/* The mailbox, once its first page has memory; NULL: there is none left. */
static struct box *ready_box(struct wire *wire, int from, int to, uint8_t *ready, int peer) {
    struct box *found = box(wire, from, to);
    if (ready[peer / 8] >> peer % 8 & 1)
        return found;
    if (sys_populate(found, sizeof *found) != 0) {
        no_room(wire);
        return NULL;
    }
    ready[peer / 8] |= (uint8_t)(1 << peer % 8);
    return found;
}

int ht_wire_send(struct wire *wire, int to, const void *bytes, size_t n, int known, const int *stop) {
    struct box *out = ready_box(wire, wire->rank, to, wire->out, to);
    if (!out)
        return WIRE_FULL;
    for (;;) { /* a full box: as a send waits for its receive */
        uint32_t read = __atomic_load_n(&out->read, __ATOMIC_ACQUIRE);
        if (out->written - read < LETTERS)
            break;
        if (gone(wire, to) || __atomic_load_n(stop, __ATOMIC_ACQUIRE))
            return WIRE_GONE;
        sleep_on(&out->read, read);
    }
    struct letter *letter = &out->letters[out->written % LETTERS];
    char *data = box_data(out, out->written);
    if (known && n > letter->room) {
        if (sys_populate(data, n) != 0)
            return no_room(wire);
        letter->room = (uint32_t)n;
    }
    if (known && n)
        memcpy(data, bytes, n);
    letter->bytes = (uint32_t)n;
    letter->known = (uint32_t)known;
    __atomic_add_fetch(&out->written, 1, __ATOMIC_RELEASE);
    wake(&out->written);
    return known;
}

int ht_wire_receive(struct wire *wire, int from, void *into, size_t n, const int *stop) {
    struct box *in = ready_box(wire, from, wire->rank, wire->in, from);
    if (!in)
        return WIRE_FULL;
    for (;;) {
        uint32_t written = __atomic_load_n(&in->written, __ATOMIC_ACQUIRE);
        if (written != in->read)
            break;
        int dead = gone(wire, from);
        if (__atomic_load_n(&in->written, __ATOMIC_ACQUIRE) != in->read)
            break;
        if (dead || __atomic_load_n(stop, __ATOMIC_ACQUIRE))
            return WIRE_GONE;
        sleep_on(&in->written, written);
    }
    struct letter *letter = &in->letters[in->read % LETTERS];
    int known = letter->known && letter->bytes >= n;
    if (known)
        memcpy(into, box_data(in, in->read), n);
    __atomic_add_fetch(&in->read, 1, __ATOMIC_RELEASE);
    wake(&in->read);
    return known;
}
