/* strangers.c: what others put into shared memory leads nowhere: links, pipes, files of other accounts, names too long for
 * a path, and a table whose counts were overwritten. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/nccl.h"
#include "../src/table.h"
#include "cuda.h"

static const char spec[] = "count=2;name=NVIDIA Test;memory=17179869184;context=104857600;cc=9.0;sms=132;nccl_base=2097152";
static char folder[] = "/dev/shm/hightide-test-XXXXXX", path[64], victim[64];

int nvmlDeviceGetCount_v2(unsigned *);
int nvmlDeviceGetHandleByIndex_v2(unsigned, const void **);
struct process { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; };
int nvmlDeviceGetComputeRunningProcesses_v3(const void *, unsigned *, struct process *);
int nvmlSystemGetProcessName(unsigned, char *, unsigned);

/* Runs a body in a process of its own, which opens the table anew. */
static void apart(void (*body)(void)) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(120); /* what waits for a pipe of a stranger's waits for ever */
        body();
        _exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a process ended with %x", status);
}

static long size_of(const char *name) {
    struct stat file;
    return stat(name, &file) == 0 ? (long)file.st_size : -1;
}

/* A table of its own: the process works, and no other sees what it has. */
static void keeps_its_own(void) {
    uint64_t at;
    int count = 0;
    OK(cudaGetDeviceCount(&count));
    OK(cudaMalloc(&at, MIB));
    CHECK(count == 2, "%d devices", count);
    CHECK(size_of(victim) == 0, "the file of a stranger was written: %ld bytes", size_of(victim));
}

static void uses_the_table(void) {
    keeps_its_own();
    CHECK(size_of(path) > 0, "the table is not there");
}

static void cuts_no_path(void) {
    char name[600] = "";
    for (int i = 0; i < 9; i++) /* folders that are there, of which the path's beginning alone would be one */
        strcat(name, i ? "/././././././././././././././././././././././././././././." : folder);
    strcat(name, "/device-table");
    setenv("HIGHTIDE_DEVICE_TABLE", name, 1);
    keeps_its_own();
    CHECK(*ht_shared_folder() == 0, "it takes %s for the folder", ht_shared_folder());
    CHECK(size_of(path) < 0, "a path of %zu bytes was cut", strlen(name));
}

/* A table is shared with whatever runs there, so its counts may say anything. */
static void looks_no_further(void) {
    uint64_t at;
    OK(cudaMalloc(&at, MIB));
    int file = open(path, O_RDWR);
    struct ht_gpu_header *header = mmap(NULL, sizeof *header, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(header != MAP_FAILED, "the table");
    const uint32_t counts[] = {UINT32_MAX, 0, HT_GPU_DEVICES + 1, 1u << 20};
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
        unsigned n = 0, room = 8;
        const void *handle;
        struct process all[8];
        char name[32];
        header->device_count = header->slot_count = header->slot_bytes = counts[i];
        header->devices_at = header->slots_at = header->slots_used = (uint64_t)counts[i] << 12;
        CHECK(nvmlDeviceGetCount_v2(&n) == 0 && n == 2, "%u devices", n);
        CHECK(nvmlDeviceGetHandleByIndex_v2(2, &handle) != 0, "a device behind the last");
        CHECK(nvmlDeviceGetHandleByIndex_v2(0, &handle) == 0, "the first device");
        CHECK(nvmlDeviceGetComputeRunningProcesses_v3(handle, &room, all) == 0 || counts[i] == 0, "its processes");
        nvmlSystemGetProcessName(1, name, sizeof name);
        uint64_t other;
        size_t left, total;
        OK(cudaMalloc(&other, MIB));
        OK(cudaMemGetInfo(&left, &total));
        OK(cudaFree((void *)other));
    }
    _exit(0); /* what is given back at the end is counted by the same */
}

static const uint64_t name[2] = {1, 2};
static char shared_name[128]; /* the file of the communicator of that name */

static void joins_nobody(void) {
    CHECK(ht_device_count() == 2, "no devices"); /* its folder is that of the table */
    CHECK(!ht_wire_open(name, 1, 0), "a communicator over %s", shared_name);
    CHECK(size_of(victim) == 0, "the file of a stranger was written: %ld bytes", size_of(victim));
}

static void joins(void) {
    CHECK(ht_device_count() == 2, "no devices");
    struct wire *wire = ht_wire_open(name, 1, 0);
    CHECK(wire && size_of(shared_name) > 0, "no communicator");
    ht_wire_close(wire);
}

static void communicators(void) {
    snprintf(shared_name, sizeof shared_name, "%s/nccl-%016llx%016llx", folder, (unsigned long long)name[0], (unsigned long long)name[1]);
    apart(joins);
    CHECK(size_of(shared_name) < 0, "its file stays");
    CHECK(symlink(victim, shared_name) == 0, "a link");
    apart(joins_nobody);
    unlink(shared_name);
    CHECK(mkfifo(shared_name, 0600) == 0, "a pipe");
    apart(joins_nobody);
    unlink(shared_name);
    int file = open(shared_name, O_RDWR | O_CREAT, 0600);
    CHECK(fchmod(file, 0666) == 0, "a file that all may write");
    apart(joins_nobody);
    if (geteuid() == 0) {
        CHECK(fchmod(file, 0600) == 0 && fchown(file, 65534, 65534) == 0, "a file of another account");
        apart(joins_nobody);
    }
    close(file);
    unlink(shared_name);
    char pipe[80];
    snprintf(pipe, sizeof pipe, "%s/nccl-pipe", folder); /* as of a communicator that was left */
    CHECK(mkfifo(pipe, 0600) == 0, "a pipe");
    apart(joins);
    CHECK(size_of(pipe) == 0, "the pipe of a stranger is gone");
    unlink(pipe);
}

int main(void) {
    CHECK(mkdtemp(folder), "no shared memory");
    snprintf(path, sizeof path, "%s/device-table", folder);
    snprintf(victim, sizeof victim, "%s/victim", folder);
    setenv("HIGHTIDE_DEVICE_TABLE", path, 1);
    setenv("HIGHTIDE_DEVICE_SPEC", spec, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("HIGHTIDE_DEVICE_PLAY");
    close(open(victim, O_RDWR | O_CREAT, 0600));
    apart(cuts_no_path);
    CHECK(symlink(victim, path) == 0, "a link");
    apart(keeps_its_own);
    unlink(path);
    CHECK(mkfifo(path, 0600) == 0, "a pipe");
    apart(keeps_its_own);
    unlink(path);
    apart(uses_the_table);
    CHECK(chmod(path, 0666) == 0, "a table that all may write");
    long before = size_of(path);
    apart(keeps_its_own);
    CHECK(size_of(path) == before && chmod(path, 0600) == 0, "it was changed");
    apart(looks_no_further);
    unlink(path);
    communicators();
    unlink(path);
    unlink(victim);
    CHECK(rmdir(folder) == 0, "something else is in shared memory");
    printf("strangers: %d checks\n", checks);
    return 0;
}
