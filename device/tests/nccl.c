/* nccl.c: ranks as processes: small values travel, the dead are noticed, what they left is removed. */
#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/nccl.h"
#include "cuda.h"

#define RANKS 8
enum { INT32 = 2, FLOAT32 = 7 };
static const char spec[] = "count=8;name=NVIDIA Test;memory=17179869184;context=104857600;cc=9.0;sms=132;nvlink=1;nccl_base=2097152";
static char folder[] = "/dev/shm/hightide-test-XXXXXX", path[64];

int ncclGetUniqueId(nccl_id *);
int ncclCommInitRank(void **, int, nccl_id, int);
int ncclCommDestroy(void *);
int ncclCommSplit(void *, int, int, void **, const void *);
int ncclAllReduce(const void *, void *, size_t, int, int, void *, void *);
int ncclAllGather(const void *, void *, size_t, int, void *, void *);
int ncclAlltoAll(const void *, void *, size_t, int, void *, void *);
int ncclGather(const void *, void *, size_t, int, int, void *, void *);
int ncclScatter(const void *, void *, size_t, int, int, void *, void *);
int ncclSend(const void *, size_t, int, int, void *, void *);
int ncclRecv(void *, size_t, int, int, void *, void *);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclCommMemStats(void *, int, uint64_t *);

static nccl_id id;
static int *shared; /* ready ranks */

static int files(void) {
    int n = 0;
    DIR *all = opendir(folder);
    for (struct dirent *file; (file = readdir(all));)
        n += strncmp(file->d_name, "nccl-", 5) == 0;
    closedir(all);
    return n;
}

static void run(int ranks, int (*body)(int, int), const int *wanted) {
    pid_t pids[RANKS];
    OK(ncclGetUniqueId(&id));
    *shared = 0;
    for (int i = 0; i < ranks; i++) {
        fflush(stdout);
        if ((pids[i] = fork()) == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* of a failed check nobody stays */
            exit(body(i, ranks));
        }
    }
    for (int i = 0; i < ranks; i++) {
        int status;
        waitpid(pids[i], &status, 0);
        int got = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
        CHECK(got == (wanted ? wanted[i] : 0), "rank %d: %d", i, got);
    }
}

static uint64_t place(int value) {
    uint64_t at;
    OK(cudaMalloc(&at, 4 * MIB));
    OK(cudaMemcpy((void *)at, &value, sizeof value, 1));
    return at;
}
static int value_at(uint64_t at, int index) {
    int value;
    OK(cudaMemcpy(&value, (int *)at + index, sizeof value, 2));
    return value;
}

static int talks(int rank, int ranks) {
    void *comm, *half;
    OK(cudaSetDevice(rank));
    OK(ncclCommInitRank(&comm, ranks, id, rank));
    CHECK(own(rank, HT_KIND_NCCL) == 2 * MIB, "a communicator has memory of its own");
    uint64_t x = place(rank + 1), y = place(0);
    OK(ncclAllReduce((void *)x, (void *)y, 1, INT32, NCCL_SUM, comm, NULL));
    CHECK(value_at(y, 0) == ranks * (ranks + 1) / 2, "sum %d", value_at(y, 0));
    CHECK(own(rank, HT_KIND_NCCL) > 2 * MIB, "and takes more at the first collective");
    uint64_t taken = own(rank, HT_KIND_NCCL);
    OK(ncclAllGather((void *)x, (void *)y, 1, INT32, comm, NULL));
    for (int i = 0; i < ranks; i++)
        CHECK(value_at(y, i) == i + 1, "part of rank %d", i);
    OK(ncclAllReduce((void *)x, (void *)y, MIB, INT32, NCCL_SUM, comm, NULL)); /* large: nobody waits, nothing is known */
    CHECK(value_at(y, 0) == 0 && ht_slot()->reads_count == 1, "unknown, and counted");
    CHECK(own(rank, HT_KIND_NCCL) == taken, "buffers are made once");
    OK(ncclGroupStart());
    OK(ncclSend((void *)x, 1, INT32, (rank + 1) % ranks, comm, NULL));
    OK(ncclRecv((void *)y, 1, INT32, (rank + ranks - 1) % ranks, comm, NULL));
    OK(ncclGroupEnd());
    CHECK(value_at(y, 0) == (rank + ranks - 1) % ranks + 1, "from the neighbour");
    OK(ncclCommSplit(comm, rank % 2, rank, &half, NULL));
    OK(ncclAllReduce((void *)x, (void *)y, 1, INT32, NCCL_MAX, half, NULL));
    CHECK(value_at(y, 0) == ranks - 1 + rank % 2, "the largest of its half");
    OK(ncclCommDestroy(half));
    OK(ncclCommDestroy(comm));
    CHECK(own(rank, HT_KIND_NCCL) == 0, "all is back");
    return 0;
}

/* One rank ends without a word; the others are told so instead of waiting for ever. */
static int loses(int rank, int ranks) {
    void *comm;
    OK(cudaSetDevice(rank));
    OK(ncclCommInitRank(&comm, ranks, id, rank));
    uint64_t x = place(rank);
    OK(ncclAllReduce((void *)x, (void *)x, 1, INT32, NCCL_SUM, comm, NULL));
    if (rank == 1)
        kill(getpid(), SIGKILL);
    return ncclAllReduce((void *)x, (void *)x, 1, INT32, NCCL_SUM, comm, NULL);
}

static int dies(int rank, int ranks) {
    void *comm;
    OK(cudaSetDevice(rank));
    OK(ncclCommInitRank(&comm, ranks, id, rank));
    __atomic_add_fetch(shared, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(shared, __ATOMIC_ACQUIRE) < ranks) /* all have joined */
        usleep(500);
    kill(getpid(), SIGKILL);
    return 0;
}

/* Communicators are made and ended all the time, some of all ranks and some of pairs. Making one looks for what killed
 * ranks left, and must not take a file for abandoned whose first rank is just coming. */
static int comes_and_goes(int rank, int ranks) {
    OK(cudaSetDevice(rank));
    uint64_t x = place(rank);
    for (int i = 0; i < 100; i++) {
        void *comm;
        nccl_id name = id;
        int pair = i % 2, n = pair ? 2 : ranks;
        int words[2] = {i, pair ? rank / 2 : 0};
        memcpy(&name, words, sizeof words);
        OK(ncclCommInitRank(&comm, n, name, pair ? rank % 2 : rank));
        OK(ncclAllReduce((void *)x, (void *)x, 1, INT32, NCCL_MAX, comm, NULL));
        OK(ncclCommDestroy(comm));
    }
    return 0;
}

static uint64_t taken(void *comm) {
    uint64_t bytes;
    OK(ncclCommMemStats(comm, 2, &bytes));
    return bytes / MIB;
}

/* A connection is of one direction: who only sends, as the root of a scatter, has no buffers to receive into. */
static int sends_and_receives(int rank, int ranks) {
    void *comm;
    OK(cudaSetDevice(rank));
    setenv("HIGHTIDE_DEVICE_PLAY", "1", 1);
    OK(ncclCommInitRank(&comm, ranks, id, rank));
    uint64_t x = place(rank), base = taken(comm);
    int peer = (rank + 1) % ranks, other = (rank + 2) % ranks;
    OK(ncclSend((void *)x, 1, INT32, peer, comm, NULL));
    OK(ncclSend((void *)x, 1, INT32, peer, comm, NULL));
    CHECK(taken(comm) - base == 32 * 4, "a send: %d MiB", (int)(taken(comm) - base));
    OK(ncclRecv((void *)x, 1, INT32, other, comm, NULL));
    CHECK(taken(comm) - base == 32 * (4 + 12), "a receive from another: %d MiB", (int)(taken(comm) - base));
    OK(ncclRecv((void *)x, 1, INT32, peer, comm, NULL));
    CHECK(taken(comm) - base == 32 * (14 + 12), "both ways: %d MiB", (int)(taken(comm) - base));
    OK(ncclSend((void *)x, 1, INT32, rank, comm, NULL));
    CHECK(taken(comm) - base == 32 * (14 + 12), "to itself: %d MiB", (int)(taken(comm) - base));
    return 0;
}

/* NCCL makes these of sends and receives. */
static int scatters_and_gathers(int rank, int ranks) {
    void *comm;
    OK(cudaSetDevice(rank));
    setenv("HIGHTIDE_DEVICE_PLAY", "1", 1);
    OK(ncclCommInitRank(&comm, ranks, id, rank));
    uint64_t x = place(rank), base = taken(comm);
    OK(ncclScatter((void *)x, (void *)x, 1, INT32, 1, comm, NULL));
    CHECK(taken(comm) - base == (rank == 1 ? (uint64_t)(ranks - 1) * 32 * 4 : 32 * 12), "scatter: %d MiB", (int)(taken(comm) - base));
    OK(ncclGather((void *)x, (void *)x, 1, INT32, 1, comm, NULL));
    CHECK(taken(comm) - base == (rank == 1 ? (uint64_t)ranks - 1 : 1) * 32 * 14, "gather: %d MiB", (int)(taken(comm) - base));
    OK(ncclAlltoAll((void *)x, (void *)x, 1, INT32, comm, NULL));
    CHECK(taken(comm) - base == (uint64_t)(ranks - 1) * 32 * 14, "all-to-all: %d MiB", (int)(taken(comm) - base));
    uint64_t parts = place(100), into = place(0);
    for (int i = 1; i < ranks; i++) {
        int value = 100 + i;
        OK(cudaMemcpy((int *)parts + i, &value, sizeof value, 1));
    }
    OK(ncclGroupStart());
    for (int i = 0; i < ranks; i++) {
        OK(ncclSend((int *)parts + i, 1, INT32, i, comm, NULL));
        OK(ncclRecv((int *)into + i, 1, INT32, i, comm, NULL));
    }
    OK(ncclGroupEnd());
    for (int i = 0; i < ranks; i++)
        CHECK(value_at(into, i) == 100 + rank, "rank %d sends what we send ourselves: %d", i, value_at(into, i));
    return 0;
}

int main(void) {
    CHECK(mkdtemp(folder), "no shared memory");
    snprintf(path, sizeof path, "%s/device-table", folder);
    setenv("HIGHTIDE_DEVICE_TABLE", path, 1);
    setenv("HIGHTIDE_DEVICE_SPEC", spec, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("HIGHTIDE_DEVICE_PLAY");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    run(RANKS, talks, NULL);
    CHECK(files() == 0, "what ranks share goes with them");
    run(4, sends_and_receives, NULL);
    run(4, scatters_and_gathers, NULL);
    run(RANKS, comes_and_goes, NULL);
    CHECK(files() == 0, "of many, too");
    const int lost[] = {NCCL_REMOTE_ERROR, -SIGKILL, NCCL_REMOTE_ERROR}, killed[] = {-SIGKILL, -SIGKILL};
    run(3, loses, lost);
    run(2, dies, killed);
    CHECK(files() > 0, "of the killed it stays");
    run(2, talks, NULL);
    CHECK(files() == 0, "until the next communicator is made");
    unlink(path);
    CHECK(rmdir(folder) == 0, "nothing else is in shared memory");
    printf("nccl: %d checks\n", checks);
    return 0;
}
