/* full.c: shared memory without room. A page that finds none is an error that says so, never a SIGBUS. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/nccl.h"
#include "cuda.h"

#define FRONT_KIB 20
#define SLOT_KIB 92
enum { INT32 = 2 };
static const char spec[] = "count=2;name=NVIDIA Test;memory=17179869184;context=104857600;cc=9.0;sms=132;nccl_base=2097152";
static char folder[] = "/tmp/hightide-full-XXXXXX", path[64];

int ncclGetUniqueId(nccl_id *);
int ncclCommInitRank(void **, int, nccl_id, int);
int ncclCommDestroy(void *);
int ncclAllReduce(const void *, void *, size_t, int, int, void *, void *);
int ncclSend(const void *, size_t, int, int, void *, void *);
int ncclRecv(void *, size_t, int, int, void *, void *);
const char *ncclGetLastError(void *);

static nccl_id id;
static int *met;

static int ended(pid_t pid) {
    int status;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Runs a body in a process of its own, over a file system of so many KiB. */
static void in_room_of(unsigned kib, int (*body)(int), int children) {
    char options[32];
    pid_t pids[2];
    snprintf(options, sizeof options, "size=%uk", kib);
    CHECK(mount("tmpfs", folder, "tmpfs", 0, options) == 0, "mount");
    *met = 0;
    OK(ncclGetUniqueId(&id));
    for (int i = 0; i < children; i++) {
        fflush(stdout);
        if ((pids[i] = fork()) == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(body(i));
        }
    }
    for (int i = 0; i < children; i++) {
        int got = ended(pids[i]);
        CHECK(got == 0, "%u KiB, process %d: %d", kib, i, got);
    }
    CHECK(umount(folder) == 0, "unmount");
}

static void fill(void) { /* what is left of the room */
    char name[80], bytes[4096] = {1};
    snprintf(name, sizeof name, "%s/filler", folder);
    int file = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600);
    while (write(file, bytes, sizeof bytes) > 0)
        ;
    close(file);
}

static int trains(void) {
    uint64_t at;
    size_t free_bytes, total;
    OK(cudaMalloc(&at, 100 * MIB));
    OK(cudaMemGetInfo(&free_bytes, &total));
    CHECK(free_bytes == total - 200 * MIB, "its own use counts: %zu of %zu are free", free_bytes, total);
    OK(cudaFree((void *)at));
    return 0;
}

static int without_a_file(int number) {
    struct stat found;
    (void)number;
    trains();
    CHECK(stat(path, &found) == 0 && found.st_size == 0, "an empty file tells the engine");
    return 0;
}

static int without_a_slot(int number) {
    (void)number;
    trains();
    CHECK(ht_table()->slots_lacking == 1 && ht_table()->slots_used == 0, "%llu processes lack a slot",
          (unsigned long long)ht_table()->slots_lacking);
    return 0;
}

static int with_a_slot(int number) {
    (void)number;
    trains();
    CHECK(ht_table()->slots_lacking == 0 && ht_table()->slots_used == 1, "it has one");
    return 0;
}

static void meet(int how_many) {
    __atomic_add_fetch(met, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(met, __ATOMIC_ACQUIRE) < how_many)
        usleep(500);
}

static uint64_t place(int value) {
    uint64_t at;
    OK(cudaMalloc(&at, 4 * MIB));
    OK(cudaMemset(at, value, 64 << 10));
    return at;
}

static int says_so(void *comm) { return strstr(ncclGetLastError(comm), "No space left") ? 0 : 9; }

static int no_communicator(int rank) {
    void *comm;
    OK(cudaSetDevice(rank));
    meet(2);
    if (rank == 0)
        fill();
    meet(4);
    FAILS(ncclCommInitRank(&comm, 2, id, rank), NCCL_SYSTEM_ERROR);
    return says_so(NULL);
}

/* One rank's part finds no room: it fails, and the other is told instead of waiting for ever. */
static int no_collective(int rank) {
    void *comm;
    OK(cudaSetDevice(rank));
    uint64_t x = place(1);
    OK(ncclCommInitRank(&comm, 2, id, rank));
    OK(ncclAllReduce((void *)x, (void *)x, 1, INT32, NCCL_SUM, comm, NULL));
    meet(2);
    if (rank == 0)
        fill();
    meet(4);
    int error = ncclAllReduce((void *)x, (void *)x, 16000, INT32, NCCL_SUM, comm, NULL);
    CHECK(error == NCCL_SYSTEM_ERROR || error == NCCL_REMOTE_ERROR, "rank %d: %d", rank, error);
    if (error == NCCL_SYSTEM_ERROR)
        CHECK(says_so(comm) == 0, "%s", ncclGetLastError(comm));
    return 0;
}

static int no_letter(int rank) {
    void *comm;
    OK(cudaSetDevice(rank));
    uint64_t x = place(1);
    OK(ncclCommInitRank(&comm, 2, id, rank));
    meet(2);
    if (rank == 0)
        fill();
    meet(4);
    if (rank == 0)
        FAILS(ncclSend((void *)x, 16000, INT32, 1, comm, NULL), NCCL_SYSTEM_ERROR);
    else
        CHECK(ncclRecv((void *)x, 16000, INT32, 0, comm, NULL) != NCCL_OK, "nothing came");
    return 0;
}

int main(void) {
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        printf("full: skipped, this user may not mount a file system\n");
        return 0;
    }
    CHECK(mkdtemp(folder), "no folder");
    snprintf(path, sizeof path, "%s/device-table", folder);
    setenv("HIGHTIDE_DEVICE_TABLE", path, 1);
    setenv("HIGHTIDE_DEVICE_SPEC", spec, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("HIGHTIDE_DEVICE_PLAY");
    met = mmap(NULL, sizeof *met, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    in_room_of(FRONT_KIB / 2, without_a_file, 1);
    in_room_of(FRONT_KIB + SLOT_KIB / 2, without_a_slot, 1);
    in_room_of(FRONT_KIB + SLOT_KIB, with_a_slot, 1);
    in_room_of(FRONT_KIB + 2 * SLOT_KIB + 16, no_communicator, 2);
    in_room_of(1024, no_collective, 2);
    in_room_of(1024, no_letter, 2);
    rmdir(folder);
    printf("full: %d checks\n", checks);
    return 0;
}
