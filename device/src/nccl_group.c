/* nccl_group.c: what ranks do together.
 *
 *     call ──▶ operation ──(group ends)──▶ 1. every operation puts up or sends its part, if it is small
 *                                          2. each then waits for the others' and writes the result
 *
 * Small: at most NCCL_SMALL bytes on either side. A result is known where every part is; else it is told
 * that a kernel wrote there. Operations on larger buffers neither move nor wait for anything: the host
 * would not either. What is small always waits for all, so that a barrier is one.
 *
 * A played rank is alone: every other rank counts as holding the same as it. */
#include <string.h>

#include "nccl.h"

#define ours ht_nccl_comm

enum kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, ALL_TO_ALL, GATHER, SCATTER, SEND, RECEIVE, NCCL_KINDS };
struct operation {
    enum kind kind;
    int type, op, root; /* root: also the peer */
    struct comm *comm;
    const void *from;
    void *to;
    size_t count;
    void *stream;
    uint64_t round;
    int small, put;
};

static __thread struct { int depth, error; size_t count, room; struct operation *list; char *part, *sum; } group;
#define part_buffer group.part
#define sum_buffer group.sum

static int have_buffers(void) {
    if (!group.part)
        group.part = ht_new(2 * NCCL_SMALL);
    group.sum = group.part ? group.part + NCCL_SMALL : NULL;
    return group.part != NULL;
}

struct sides { size_t in, out; }; /* bytes that are read and written; this rank's */
static struct sides sides(const struct operation *o) {
    size_t bytes = o->count * ht_nccl_size(o->type), all = bytes * (size_t)o->comm->n;
    int root = o->root == o->comm->rank;
    switch (o->kind) {
    case ALL_GATHER: return (struct sides){bytes, all};
    case REDUCE_SCATTER: return (struct sides){all, bytes};
    case ALL_TO_ALL: return (struct sides){all, all};
    case GATHER: return (struct sides){bytes, root ? all : 0};
    case SCATTER: return (struct sides){root ? all : 0, bytes};
    case REDUCE: return (struct sides){bytes, root ? bytes : 0};
    case BROADCAST: return (struct sides){root ? bytes : 0, bytes};
    case SEND: return (struct sides){bytes, 0};
    case RECEIVE: return (struct sides){0, bytes};
    default: return (struct sides){bytes, bytes};
    }
}

/* The same on all ranks, so that all agree on whether they meet. */
static int is_small(const struct operation *o) {
    size_t bytes = o->count * ht_nccl_size(o->type);
    int wide = o->kind == ALL_GATHER || o->kind == REDUCE_SCATTER || o->kind == ALL_TO_ALL || o->kind == GATHER || o->kind == SCATTER;
    return bytes <= NCCL_SMALL && (!wide || bytes * (size_t)o->comm->n <= NCCL_SMALL);
}

static int connect_peer(struct comm *comm, int peer, int ways) {
    if (peer == comm->rank || peer >= NCCL_PEERS)
        return NCCL_OK;
    int before = comm->peers[peer], now = before | ways;
    comm->peers[peer] = (uint8_t)now;
    return now == before ? NCCL_OK
                         : ht_nccl_charge(comm, ht_nccl_peer(comm->device, comm->n, now) - ht_nccl_peer(comm->device, comm->n, before));
}

/* NCCL makes an all-to-all, a gather and a scatter of sends and receives. */
static int connect_buffers(struct operation *o) {
    struct comm *comm = o->comm;
    int ways[NCCL_KINDS] = {[ALL_TO_ALL] = HT_SENDS | HT_RECEIVES, [GATHER] = HT_RECEIVES, [SCATTER] = HT_SENDS,
                            [SEND] = HT_SENDS, [RECEIVE] = HT_RECEIVES}, way = ways[o->kind], status = NCCL_OK;
    if (comm->n < 2)
        return NCCL_OK;
    if (!way) {
        int first = !comm->collectives;
        comm->collectives = 1;
        return first ? ht_nccl_charge(comm, ht_nccl_collectives(comm->device, comm->n)) : NCCL_OK;
    }
    if (o->kind >= SEND)
        return connect_peer(comm, o->root, way);
    if (o->kind != ALL_TO_ALL && o->root != comm->rank) /* a leaf does what its root does not */
        return connect_peer(comm, o->root, way ^ (HT_SENDS | HT_RECEIVES));
    for (int peer = 0; peer < comm->n && !status; peer++)
        status = connect_peer(comm, peer, way);
    return status;
}

#define USER_OPS 256
struct scaled { int used, type, on_device; uint8_t scalar[8]; const void *address; };
static struct scaled scaled[USER_OPS];

int ht_nccl_new_op(int *op, void *scalar, int type, int on_host) {
    for (int i = 0; i < USER_OPS; i++) {
        if (__atomic_exchange_n(&scaled[i].used, 1, __ATOMIC_ACQ_REL))
            continue;
        scaled[i].type = type;
        scaled[i].on_device = !on_host;
        scaled[i].address = scalar;
        if (on_host)
            memcpy(scaled[i].scalar, scalar, ht_nccl_size(type));
        *op = i + 5;
        return NCCL_OK;
    }
    return NCCL_INVALID_USAGE;
}

int ht_nccl_drop_op(int op) {
    if (op < 5 || op >= 5 + USER_OPS)
        return NCCL_INVALID_ARGUMENT;
    __atomic_store_n(&scaled[op - 5].used, 0, __ATOMIC_RELEASE);
    return NCCL_OK;
}

static int reduces(const struct operation *o) { return o->kind == ALL_REDUCE || o->kind == REDUCE || o->kind == REDUCE_SCATTER; }
static const struct scaled *user_op(const struct operation *o) {
    return reduces(o) && o->op >= 5 && o->op < 5 + USER_OPS && scaled[o->op - 5].used ? &scaled[o->op - 5] : NULL;
}

static int own_part(const struct operation *o, void *into, size_t n) {
    int known = ht_kept((uint64_t)o->from, into, n);
    const struct scaled *by = user_op(o);
    if (by) {
        uint8_t scalar[8];
        memcpy(scalar, by->scalar, 8);
        if (by->on_device)
            known &= ht_kept((uint64_t)by->address, scalar, ht_nccl_size(o->type));
        ht_nccl_scale(into, scalar, n / ht_nccl_size(o->type), o->type);
    }
    return known;
}

static void write_result(const struct operation *o, const void *bytes, size_t n, int known) {
    if (known && n)
        ht_host_wrote((uint64_t)o->to, bytes, n);
    else if (n)
        ht_written((uint64_t)o->to, n);
}

static int base_op(int op) { return op >= 5 ? NCCL_SUM : op; }

/* The part of rank `rank` arrived in `part`: adds it to the result. */
static void take(const struct operation *o, int rank, int first, const char *part, char *result) {
    size_t bytes = o->count * ht_nccl_size(o->type), mine = (size_t)o->comm->rank * bytes;
    switch (o->kind) {
    case ALL_GATHER: case GATHER: memcpy(result + (size_t)rank * bytes, part, bytes); break;
    case ALL_TO_ALL: memcpy(result + (size_t)rank * bytes, part + mine, bytes); break;
    case SCATTER: if (rank == o->root) memcpy(result, part + mine, bytes); break;
    case BROADCAST: if (rank == o->root) memcpy(result, part, bytes); break;
    default:
        part += o->kind == REDUCE_SCATTER ? mine : 0;
        if (first)
            memcpy(result, part, bytes);
        else
            ht_nccl_fold(result, part, o->count, o->type, base_op(o->op));
    }
}

/* What rank `rank` contributes; who contributes nothing still comes, so that all meet. */
static size_t part_bytes(const struct operation *o, int rank) {
    struct comm as = *o->comm;
    struct operation theirs = *o;
    as.rank = rank;
    theirs.comm = &as;
    return sides(&theirs).in;
}

static int finish(struct operation *o) {
    struct comm *comm = o->comm;
    size_t out = sides(o).out;
    int known = 1, first = 1;
    for (int rank = 0; rank < comm->n; rank++) {
        size_t n = part_bytes(o, rank);
        int got = ht_wire_get(comm->wire, o->round, rank, part_buffer, n, &comm->stop);
        if (got < 0) {
            comm->error = NCCL_REMOTE_ERROR;
            ht_written((uint64_t)o->to, out);
            return NCCL_REMOTE_ERROR;
        }
        if (n && !got)
            known = 0;
        if (n && known && out)
            take(o, rank, first, part_buffer, sum_buffer);
        first = 0;
    }
    ht_nccl_finish(sum_buffer, known && out ? o->count : 0, o->type, o->op, comm->n);
    write_result(o, sum_buffer, out, known);
    return NCCL_OK;
}

/* Alone: every other rank holds what this one holds. A receive gets what this rank sends itself in the same group, as in an
 * all-to-all that is made of sends and receives, else what it sends to that peer. */
static int play(struct operation *o, struct operation *all, size_t count) {
    struct comm *comm = o->comm;
    struct sides s = sides(o);
    const struct operation *source = o;
    if (o->kind == SEND)
        return NCCL_OK;
    if (o->kind == RECEIVE)
        for (size_t i = 0, itself = 0; i < count && !itself; i++)
            if (all[i].kind == SEND && all[i].comm == comm && all[i].count == o->count &&
                ((itself = all[i].root == comm->rank) || all[i].root == o->root)) /* as the peer, which sends us what we send ourselves */
                source = &all[i];
    if (o->kind == BROADCAST && o->root != comm->rank) /* one of a gather that is made of broadcasts, one of each rank */
        for (size_t i = 0; i < count; i++)
            if (all[i].kind == BROADCAST && all[i].comm == comm && all[i].root == comm->rank && all[i].count == o->count)
                source = &all[i];
    struct operation own = *o;
    size_t in = s.in ? s.in : s.out;
    own.from = source->from;
    int known = own.from && o->small && own_part(&own, part_buffer, in);
    if (o->kind == RECEIVE || o->kind == BROADCAST || (o->kind == SCATTER && !s.in))
        memcpy(sum_buffer, part_buffer, known ? s.out : 0);
    else
        for (int rank = 0; rank < comm->n && known && s.out; rank++)
            take(o, rank, rank == 0, part_buffer, sum_buffer);
    ht_nccl_finish(sum_buffer, known && s.out ? o->count : 0, o->type, o->op, comm->n);
    write_result(o, sum_buffer, s.out, known);
    return NCCL_OK;
}

static int single(struct operation *o) { /* the only rank: a copy */
    struct sides s = sides(o);
    if (user_op(o) && o->small)
        write_result(o, part_buffer, s.out, own_part(o, part_buffer, s.in));
    else if (s.in && s.out)
        ht_copied((uint64_t)o->to, (uint64_t)o->from, s.out);
    return NCCL_OK;
}

/* The other ranks wait for a part that finds no room; they are told, as of a rank that has ended. */
static int leave(struct comm *comm) {
    ht_wire_leave(comm->wire);
    return comm->error = NCCL_SYSTEM_ERROR;
}

static int put(struct operation *o) {
    struct comm *comm = o->comm;
    size_t in = sides(o).in;
    int known = in && own_part(o, part_buffer, in), failed = 0;
    o->put = 1;
    if (o->kind == SEND)
        failed = ht_wire_send(comm->wire, o->root, part_buffer, in, known, &comm->stop) == WIRE_FULL;
    else if (o->kind != RECEIVE) {
        o->round = comm->round++;
        failed = ht_wire_put(comm->wire, o->round, part_buffer, in, known) == WIRE_FULL;
    }
    return failed ? leave(comm) : NCCL_OK;
}

static int receive(struct operation *o) {
    struct comm *comm = o->comm;
    size_t n = sides(o).out;
    int got = ht_wire_receive(comm->wire, o->root, part_buffer, n, &comm->stop);
    write_result(o, part_buffer, n, got > 0);
    if (got == WIRE_FULL)
        return leave(comm);
    return got < 0 ? comm->error = NCCL_REMOTE_ERROR : NCCL_OK;
}

/* Two collectives of one communicator in a group: the second is put up once the first is done, since
 * its part may be the first's result. */
static int is_ready(const struct operation *o, const struct operation *all, size_t before) {
    for (size_t i = 0; i < before; i++)
        if (all[i].comm == o->comm && all[i].small && all[i].kind < SEND)
            return 0;
    return 1;
}

static int perform(struct operation *all, size_t count) {
    int status = have_buffers() ? NCCL_OK : NCCL_SYSTEM_ERROR;
    for (size_t i = 0; i < count && !status; i++) {
        struct operation *o = &all[i];
        int failed = status = connect_buffers(o);
        ht_stream_work(o->stream, 0);
        o->small = is_small(o) && !ht_capturing(o->stream, NULL);
        if (o->small && o->comm->wire && !o->comm->stop && (o->kind >= SEND || is_ready(o, all, i)))
            failed = put(o);
        status = status ? status : failed;
    }
    for (size_t i = 0; i < count && !status; i++) {
        struct operation *o = &all[i];
        if (o->comm->n == 1 && o->kind < SEND)
            status = single(o);
        else if (o->comm->play || o->comm->n == 1)
            status = play(o, all, count);
        else if (!o->small || o->comm->stop || !o->comm->wire)
            write_result(o, NULL, sides(o).out, 0);
        else if (o->kind == RECEIVE)
            status = receive(o);
        else if (o->kind < SEND) {
            status = o->put ? NCCL_OK : put(o);
            status = status ? status : finish(o);
        }
    }
    return status;
}

int ht_nccl_meet(struct comm *comm, const void *mine, void *all, size_t n) {
    for (int rank = 0; rank < comm->n && !comm->wire; rank++)
        memcpy((char *)all + (size_t)rank * n, mine, n);
    if (!comm->wire)
        return NCCL_OK;
    uint64_t round = comm->round++;
    if (ht_wire_put(comm->wire, round, mine, n, 1) == WIRE_FULL)
        return leave(comm);
    for (int rank = 0; rank < comm->n; rank++)
        if (ht_wire_get(comm->wire, round, rank, (char *)all + (size_t)rank * n, n, &comm->stop) < 1)
            return comm->error = NCCL_REMOTE_ERROR;
    return NCCL_OK;
}

HT_EXPORT int ncclGroupStart(void) {
    group.depth++;
    return NCCL_OK;
}

HT_EXPORT int ncclGroupEnd(void) {
    if (group.depth < 1)
        return NCCL_INVALID_USAGE;
    if (--group.depth)
        return NCCL_OK;
    int status = group.error ? group.error : perform(group.list, group.count);
    group.count = 0;
    group.error = 0;
    return status;
}

static int add(struct operation o) {
    if (!o.comm || !ht_nccl_size(o.type) || o.root < 0 || o.root >= o.comm->n) {
        group.error = group.depth ? NCCL_INVALID_ARGUMENT : NCCL_OK;
        return NCCL_INVALID_ARGUMENT;
    }
    if (!group.depth)
        return perform(&o, 1);
    if (group.count == group.room) {
        size_t room = group.room ? group.room * 2 : 64;
        struct operation *list = ht_new(room * sizeof *list);
        if (!list)
            return group.error = NCCL_SYSTEM_ERROR;
        if (group.list) {
            memcpy(list, group.list, group.count * sizeof *list);
            ht_drop(group.list, group.room * sizeof *list);
        }
        group.list = list;
        group.room = room;
    }
    group.list[group.count++] = o;
    return NCCL_OK;
}

HT_EXPORT int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, void *comm, void *stream) {
    return add((struct operation){.kind = ALL_REDUCE, .type = type, .op = op, .comm = ours(comm), .from = from, .to = to, .count = count, .stream = stream});
}
HT_EXPORT int ncclAllGather(const void *from, void *to, size_t count, int type, void *comm, void *stream) {
    return add((struct operation){.kind = ALL_GATHER, .type = type, .comm = ours(comm), .from = from, .to = to, .count = count, .stream = stream});
}
HT_EXPORT int ncclReduceScatter(const void *from, void *to, size_t count, int type, int op, void *comm, void *stream) {
    return add((struct operation){.kind = REDUCE_SCATTER, .type = type, .op = op, .comm = ours(comm), .from = from, .to = to, .count = count, .stream = stream});
}
int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, void *comm, void *stream);
HT_EXPORT int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, void *comm, void *stream) {
    return add((struct operation){.kind = BROADCAST, .type = type, .root = root, .comm = ours(comm), .from = from, .to = to, .count = count, .stream = stream});
}
HT_EXPORT int ncclBcast(void *buffer, size_t count, int type, int root, void *comm, void *stream) {
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
HT_EXPORT int ncclReduce(const void *from, void *to, size_t count, int type, int op, int root, void *comm, void *stream) {
    return add((struct operation){.kind = REDUCE, .type = type, .op = op, .root = root, .comm = ours(comm), .from = from, .to = to, .count = count, .stream = stream});
}
HT_EXPORT int ncclAlltoAll(const void *from, void *to, size_t count, int type, void *comm, void *stream) {
    return add((struct operation){.kind = ALL_TO_ALL, .type = type, .comm = ours(comm), .from = from, .to = to, .count = count, .stream = stream});
}
HT_EXPORT int ncclGather(const void *from, void *to, size_t count, int type, int root, void *comm, void *stream) {
    return add((struct operation){.kind = GATHER, .type = type, .root = root, .comm = ours(comm), .from = from, .to = to, .count = count, .stream = stream});
}
HT_EXPORT int ncclScatter(const void *from, void *to, size_t count, int type, int root, void *comm, void *stream) {
    return add((struct operation){.kind = SCATTER, .type = type, .root = root, .comm = ours(comm), .from = from, .to = to, .count = count, .stream = stream});
}
HT_EXPORT int ncclSend(const void *from, size_t count, int type, int peer, void *comm, void *stream) {
    return add((struct operation){.kind = SEND, .type = type, .root = peer, .comm = ours(comm), .from = from, .count = count, .stream = stream});
}
HT_EXPORT int ncclRecv(void *to, size_t count, int type, int peer, void *comm, void *stream) {
    return add((struct operation){.kind = RECEIVE, .type = type, .root = peer, .comm = ours(comm), .to = to, .count = count, .stream = stream});
}
