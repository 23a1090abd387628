/* processes.c: several processes in one device table: who has what, memory of others, ends of every kind. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda.h"

#define DEVICES 8
#define PROCESSES 16
static const char spec[] = "count=8;name=NVIDIA Test;memory=17179869184;context=104857600;cc=9.0;sms=132";
static char folder[] = "/dev/shm/hightide-test-XXXXXX", path[64];

struct page { int ready, go; struct test_ipc handle; }; /* between a test and its children */
static struct page *page;

static void wait_for(int *word, int value) {
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value)
        usleep(500);
}
static void say(int *word) { __atomic_add_fetch(word, 1, __ATOMIC_ACQ_REL); }

/* The parent uses no device of its own before its children are there: a child of one that does gets none. */
static pid_t child(int (*body)(int), int number) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* of a failed check nobody stays */
        exit(body(number));
    }
    return pid;
}
static int ended(pid_t pid) {
    int status;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static uint64_t bytes_of(int number) { return (uint64_t)(number + 1) * 64 * MIB; }

static int holds(int number) {
    uint64_t at, small;
    OK(cudaSetDevice(number % DEVICES));
    OK(cudaMalloc(&at, bytes_of(number)));
    for (int i = 0; i < 200; i++) { /* all at once, under one lock */
        OK(cudaMalloc(&small, 3 * MIB));
        OK(cudaFree((void *)small));
    }
    say(&page->ready);
    wait_for(&page->go, 1);
    return 0;
}

static void sixteen_on_eight(void) {
    pid_t pids[PROCESSES];
    memset(page, 0, sizeof *page);
    for (int i = 0; i < PROCESSES; i++)
        pids[i] = child(holds, i);
    wait_for(&page->ready, PROCESSES);
    for (int i = 0; i < DEVICES; i++) {
        uint64_t wanted = 200 * MIB + bytes_of(i) + bytes_of(i + DEVICES);
        CHECK(gpu_of(i)->used == wanted, "device %d: %llu", i, (unsigned long long)gpu_of(i)->used);
    }
    kill(pids[3], SIGKILL);
    CHECK(ended(pids[3]) == -SIGKILL, "killed");
    say(&page->go);
    for (int i = 0; i < PROCESSES; i++)
        if (i != 3)
            CHECK(ended(pids[i]) == 0, "process %d", i);
    CHECK(gpu_of(3)->used == 100 * MIB + bytes_of(3), "the killed one's is still there");
    CHECK(gpu_of(0)->used == 0 && gpu_of(0)->peak >= 200 * MIB + bytes_of(0) + bytes_of(8), "the others' is not");
}

static int sees_room(int number) {
    size_t free_bytes, total;
    OK(cudaSetDevice(number));
    OK(cudaMemGetInfo(&free_bytes, &total));
    return free_bytes == total - 100 * MIB ? 0 : 1;
}
static void the_next_one_reaps(void) {
    CHECK(ended(child(sees_room, 3)) == 0, "it finds the killed one's memory free");
    CHECK(gpu_of(3)->used == 0 && ht_table()->reaped == 1, "reaped %llu", (unsigned long long)ht_table()->reaped);
}

/* Who cannot open another file cannot look whether the others live; it must not take them for dead. */
static int holds_one(int number) {
    uint64_t at;
    OK(cudaSetDevice(number));
    OK(cudaMalloc(&at, bytes_of(number)));
    say(&page->ready);
    wait_for(&page->go, 1);
    return 0;
}
static int has_no_file_left(int number) {
    size_t free_bytes, total;
    struct rlimit usual, none;
    OK(cudaSetDevice(number));
    OK(cudaMemGetInfo(&free_bytes, &total));
    CHECK(getrlimit(RLIMIT_NOFILE, &usual) == 0, "limit");
    none = (struct rlimit){0, usual.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0, "limit");
    OK(cudaMemGetInfo(&free_bytes, &total));
    CHECK(setrlimit(RLIMIT_NOFILE, &usual) == 0, "limit"); /* sanitizers look around at the end */
    return free_bytes == total - 200 * MIB - bytes_of(number) ? 0 : 1;
}
static void without_files(void) {
    memset(page, 0, sizeof *page);
    pid_t holder = child(holds_one, 6);
    wait_for(&page->ready, 1);
    CHECK(ended(child(has_no_file_left, 6)) == 0, "the other's memory is still counted");
    say(&page->go);
    CHECK(ended(holder) == 0, "holder");
}

/* ---- a rank that does not fit */
static int fills(int number) {
    uint64_t at;
    OK(cudaSetDevice(0));
    int error = cudaMalloc(&at, 9 * GIB); /* two do not fit on one */
    say(&page->ready);
    wait_for(&page->ready, 2);
    (void)number;
    return error;
}
static void one_does_not_fit(void) {
    memset(page, 0, sizeof *page);
    pid_t a = child(fills, 0), b = child(fills, 1);
    int first = ended(a), second = ended(b);
    CHECK(first + second == CUDA_OUT_OF_MEMORY && first * second == 0, "%d %d", first, second);
}

/* ---- memory of another process */
static int lends(int number) {
    uint64_t at;
    (void)number;
    OK(cudaMalloc(&at, 100 * MIB));
    OK(cudaIpcGetMemHandle(&page->handle, (void *)at));
    say(&page->ready);
    wait_for(&page->go, 1);
    return 0;
}
static int borrows(int number) {
    uint64_t at, before;
    (void)number;
    struct test_ipc nonsense = {"nonsense"};
    OK(cudaSetDevice(0));
    before = gpu_of(0)->used;
    OK(cudaIpcOpenMemHandle(&at, page->handle, 1));
    CHECK(gpu_of(0)->used == before, "it is the owner's in the device table");
    CHECK(ht_on_device((void *)(at + MIB)), "and can be pointed into");
    FAILS(cudaFree((void *)at), CUDA_INVALID_VALUE);
    OK(cudaIpcCloseMemHandle((void *)at));
    FAILS(cudaIpcCloseMemHandle((void *)at), CUDA_INVALID_VALUE);
    FAILS(cudaIpcOpenMemHandle(&at, nonsense, 1), CUDA_INVALID_VALUE);
    say(&page->go);
    return 0;
}
static void lent(void) {
    memset(page, 0, sizeof *page);
    pid_t a = child(lends, 0);
    wait_for(&page->ready, 1);
    CHECK(ended(child(borrows, 1)) == 0, "borrower");
    CHECK(ended(a) == 0, "lender");
}

static int peers(int number) {
    int can;
    (void)number;
    OK(cudaSetDevice(1));
    OK(cudaDeviceCanAccessPeer(&can, 1, 2));
    CHECK(can == 1, "every device reaches every other");
    OK(cudaDeviceCanAccessPeer(&can, 1, 1));
    CHECK(can == 0, "but none itself");
    FAILS(cudaDeviceDisablePeerAccess(2), CUDA_PEER_NOT_ENABLED);
    OK(cudaDeviceEnablePeerAccess(2, 0));
    FAILS(cudaDeviceEnablePeerAccess(2, 0), CUDA_PEER_ENABLED);
    OK(cudaDeviceDisablePeerAccess(2));
    FAILS(cudaDeviceEnablePeerAccess(9, 0), CUDA_INVALID_DEVICE);
    return 0;
}

/* A child of a process that has a context gets none, as with CUDA. */
static int inherits(int number) {
    (void)number;
    uint64_t at;
    return cudaMalloc(&at, MIB);
}
static int forks(int number) {
    uint64_t at;
    (void)number;
    OK(cudaMalloc(&at, MIB));
    CHECK(ended(child(inherits, 0)) == CUDA_NOT_INITIALIZED, "refused");
    OK(cudaFree((void *)at)); /* the parent goes on */
    return 0;
}

/* Killed at any moment, the lock's holder too: the next one finds a table that adds up. */
__attribute__((noreturn)) static int churns(int number) {
    uint64_t at;
    OK(cudaSetDevice(number % DEVICES));
    for (;;) {
        OK(cudaMalloc(&at, 2 * GIB));
        OK(cudaFree((void *)at));
    }
}
static void killed_at_any_moment(void) {
    for (int round = 0; round < 20; round++) {
        pid_t a = child(churns, 5), b = child(churns, 5);
        usleep(2000 + 700 * (useconds_t)round);
        kill(a, SIGKILL);
        kill(b, SIGKILL);
        ended(a), ended(b);
        CHECK(ended(child(sees_room, 5)) == 0, "round %d", round);
        CHECK(gpu_of(5)->used == 0, "round %d: %llu", round, (unsigned long long)gpu_of(5)->used);
    }
}

int main(void) {
    CHECK(mkdtemp(folder), "no shared memory");
    snprintf(path, sizeof path, "%s/device-table", folder);
    setenv("HIGHTIDE_DEVICE_TABLE", path, 1);
    setenv("HIGHTIDE_DEVICE_SPEC", spec, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sixteen_on_eight();
    the_next_one_reaps();
    without_files();
    one_does_not_fit();
    lent();
    CHECK(ended(child(peers, 0)) == 0, "peers");
    CHECK(ended(child(forks, 0)) == 0, "forks");
    killed_at_any_moment();
    unlink(path);
    CHECK(rmdir(folder) == 0, "nothing else is in shared memory");
    printf("processes: %d checks\n", checks);
    return 0;
}
