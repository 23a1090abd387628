/* nccl.h: what the files that answer for NCCL share.
 *
 *     nccl.c        communicators and their memory
 *     nccl_group.c  groups of operations
 *     nccl_wire.c   small values between the ranks of this machine, through shared memory
 *     nccl_math.c   reductions on the host, in every type
 *     nccl_model.c  what a communicator takes of the device's memory */
#ifndef HT_NCCL_H
#define HT_NCCL_H
#include "core.h"

enum { NCCL_OK = 0, NCCL_CUDA_ERROR = 1, NCCL_SYSTEM_ERROR = 2, NCCL_INVALID_ARGUMENT = 4, NCCL_INVALID_USAGE = 5, NCCL_REMOTE_ERROR = 6 };
enum { NCCL_SUM = 0, NCCL_PROD = 1, NCCL_MAX = 2, NCCL_MIN = 3, NCCL_AVG = 4 };

/* What travels: at most so much on either side of a collective. Larger buffers move nothing. */
#define NCCL_SMALL (64u << 10)

typedef struct { char bytes[128]; } nccl_id;

#define NCCL_COMM_MAGIC 0x6d6d6f63636e63ull
#define NCCL_PEERS 4096
struct wire;
struct comm {
    HT_HANDLE;
    uint64_t name[2];
    int n, rank, device;
    int stop, error, play; /* stop: aborted; what waits gives up */
    int shares;            /* a split's buffers are its parent's */
    uint64_t round, splits, charged;
    struct wire *wire;
    uint8_t collectives, peers[NCCL_PEERS]; /* of each peer: HT_SENDS, HT_RECEIVES */
};
static inline struct comm *ht_nccl_comm(void *handle) { return ht_is(handle, NCCL_COMM_MAGIC) ? handle : NULL; }
int ht_nccl_charge(struct comm *comm, uint64_t bytes);

/* ---- nccl_group.c: gathers `n` bytes of every rank, host to host; for splitting. A played rank's own only. */
int ht_nccl_meet(struct comm *comm, const void *mine, void *all, size_t n);
/* A user's reduction, 5.. : a sum of values each multiplied by a scalar, on the host or the device. */
int ht_nccl_new_op(int *op, void *scalar, int type, int on_host);
int ht_nccl_drop_op(int op);

/* ---- nccl_wire.c. Ranks number 0..n-1; all calls of one collective carry the same number `round`,
 * which counts from 0. Nothing waits at opening. */
struct wire *ht_wire_open(const uint64_t name[2], int n, int rank);
const char *ht_wire_trouble(void); /* what went wrong at the file of shared memory, for the calling thread */
void ht_wire_leave(struct wire *wire); /* nobody waits for this rank any more; the mapping stays */
void ht_wire_close(struct wire *wire); /* leaves, if it has not */
/* Puts up this rank's part of a round; known 0: the bytes are not known. WIRE_FULL: no room for them. */
enum { WIRE_GONE = -1, WIRE_FULL = -2 };
int ht_wire_put(struct wire *wire, uint64_t round, const void *bytes, size_t n, int known);
/* Waits for a rank's part: 1 known and copied, 0 not known, WIRE_GONE: that rank is gone or *stop is set. */
int ht_wire_get(struct wire *wire, uint64_t round, int rank, void *into, size_t n, const int *stop);
/* One value from a rank to another, in order; as above, or WIRE_FULL: shared memory has no room for it. */
int ht_wire_send(struct wire *wire, int to, const void *bytes, size_t n, int known, const int *stop);
int ht_wire_receive(struct wire *wire, int from, void *into, size_t n, const int *stop);

/* ---- nccl_math.c */
size_t ht_nccl_size(int type); /* bytes of an element, 0: no such type */
/* sum[i] = sum[i] op more[i]; NCCL_AVG adds, ht_nccl_finish divides. */
void ht_nccl_fold(void *sum, const void *more, size_t count, int type, int op);
void ht_nccl_finish(void *sum, size_t count, int type, int op, int ranks);
/* Multiplies by a scalar of that type: the first half of a premultiplied sum. */
void ht_nccl_scale(void *values, const void *scalar, size_t count, int type);

/* ---- nccl_model.c: bytes on a device */
uint64_t ht_nccl_base(int device, int ranks);        /* when it is made */
uint64_t ht_nccl_collectives(int device, int ranks); /* at the first collective */
enum { HT_SENDS = 1, HT_RECEIVES = 2 };
uint64_t ht_nccl_peer(int device, int ranks, int ways); /* of a rank that is sent to, received from, or both */
#endif
