/* hightide-nvml: asks NVIDIA's management library, for a parent that cannot load libraries.
 *
 *     stdin: one byte a question ──▶ libnvidia-ml.so.1 (dlopen) ──▶ stdout: lines up to "end"
 *
 * Why a program of its own: docs/decisions/nvml.md. It lives as long as its stdin is open; a driver
 * that hangs hangs this program and nothing else. Declarations follow the published NVML API
 * reference (functions, structures, error codes); nothing of NVIDIA's is included or linked.
 *
 * Answers. At the start:  driver VERSION / gpu I UUID BYTES NAME...  or  error TEXT
 * To each byte:  sample NS (CLOCK_MONOTONIC) / used I BYTES / util I PERCENT / temp I CELSIUS /
 * power I MILLIWATTS / process I PID BYTES / note TEXT. What a device does not answer is left out.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../../../common/since.h"

/* Bind to the oldest versions of what newer C libraries renamed, so that this runs on every glibc
 * from 2.17 on; the entry point below for the same reason. */
__asm__(".symver dlopen, dlopen@" HT_SINCE("2.2.5"));
__asm__(".symver dlsym, dlsym@" HT_SINCE("2.2.5"));
__asm__(".symver dlerror, dlerror@" HT_SINCE("2.2.5"));
__asm__(".symver __libc_start_main, __libc_start_main@" HT_SINCE("2.2.5"));
__asm__(".symver clock_gettime, clock_gettime@GLIBC_2.17");

typedef struct nvml_device *device;
struct memory_v1 { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
struct utilization { unsigned gpu, memory; };
struct process_v1 { unsigned pid; unsigned long long used; };
struct process_v2 { unsigned pid; unsigned long long used; unsigned instance, compute_instance; };
_Static_assert(sizeof(struct memory_v2) == 40 && sizeof(struct process_v1) == 16 && sizeof(struct process_v2) == 24, "NVML layouts");

enum { SUCCESS = 0, INSUFFICIENT_SIZE = 7, MAX_DEVICES = 64, MAX_PROCESSES = 1024, TEMPERATURE_GPU = 0, MIG_ENABLED = 1 };
#define MEMORY_V2 (sizeof(struct memory_v2) | 2u << 24)
#define NOT_AVAILABLE (~0ull)

static void *library;
static device devices[MAX_DEVICES];
static unsigned count;

static int (*memory_v1)(device, struct memory_v1 *);
static int (*memory_v2)(device, struct memory_v2 *);
static int (*utilization)(device, struct utilization *);
static int (*temperature)(device, int, unsigned *);
static int (*power)(device, unsigned *);
static int (*mig_mode)(device, unsigned *, unsigned *);
static const char *(*error_string)(int);
struct lister { int (*list)(device, unsigned *, void *); size_t size; };
static struct lister listers[2]; /* compute, graphics */

static void *find(const char *name) { return dlsym(library, name); }

/* The newest of a function's versions that this driver has. */
static struct lister find_lister(const char *base)
{
    static const struct { const char *suffix; size_t size; } versions[] = {
        {"_v3", sizeof(struct process_v2)}, {"_v2", sizeof(struct process_v2)}, {"", sizeof(struct process_v1)}};
    char name[80];
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s%s", base, versions[i].suffix);
        struct lister found = {(int (*)(device, unsigned *, void *))find(name), versions[i].size};
        if (found.list)
            return found;
    }
    return (struct lister){0, 0};
}

static int fail(const char *what, int code)
{
    const char *text = error_string ? error_string(code) : "";
    printf("error %s: %s (%d)\nend\n", what, text ? text : "", code);
    return 1;
}

static int start(void)
{
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("error %s\nend\n", dlerror());
        return 1;
    }
    error_string = (const char *(*)(int))find("nvmlErrorString");
    int (*init)(void) = (int (*)(void))find("nvmlInit_v2");
    int (*get_count)(unsigned *) = (int (*)(unsigned *))find("nvmlDeviceGetCount_v2");
    int (*get_handle)(unsigned, device *) = (int (*)(unsigned, device *))find("nvmlDeviceGetHandleByIndex_v2");
    int (*get_name)(device, char *, unsigned) = (int (*)(device, char *, unsigned))find("nvmlDeviceGetName");
    int (*get_uuid)(device, char *, unsigned) = (int (*)(device, char *, unsigned))find("nvmlDeviceGetUUID");
    int (*get_driver)(char *, unsigned) = (int (*)(char *, unsigned))find("nvmlSystemGetDriverVersion");
    memory_v1 = (int (*)(device, struct memory_v1 *))find("nvmlDeviceGetMemoryInfo");
    memory_v2 = (int (*)(device, struct memory_v2 *))find("nvmlDeviceGetMemoryInfo_v2");
    utilization = (int (*)(device, struct utilization *))find("nvmlDeviceGetUtilizationRates");
    temperature = (int (*)(device, int, unsigned *))find("nvmlDeviceGetTemperature");
    power = (int (*)(device, unsigned *))find("nvmlDeviceGetPowerUsage");
    mig_mode = (int (*)(device, unsigned *, unsigned *))find("nvmlDeviceGetMigMode");
    listers[0] = find_lister("nvmlDeviceGetComputeRunningProcesses");
    listers[1] = find_lister("nvmlDeviceGetGraphicsRunningProcesses");
    if (!init || !get_count || !get_handle || !memory_v1)
        return fail("libnvidia-ml.so.1 lacks a function that we need", 0);
    int code = init();
    if (code != SUCCESS)
        return fail("nvmlInit_v2", code);
    char text[128] = "";
    if (get_driver && get_driver(text, sizeof text) == SUCCESS)
        printf("driver %s\n", text);
    if ((code = get_count(&count)) != SUCCESS)
        return fail("nvmlDeviceGetCount_v2", code);
    if (count > MAX_DEVICES)
        count = MAX_DEVICES;
    for (unsigned i = 0; i < count; i++) {
        struct memory_v1 memory = {0, 0, 0};
        char name[128] = "GPU", uuid[128] = "-";
        if (get_handle(i, &devices[i]) != SUCCESS) {
            devices[i] = NULL;
            continue;
        }
        memory_v1(devices[i], &memory);
        if (get_name)
            get_name(devices[i], name, sizeof name);
        if (get_uuid)
            get_uuid(devices[i], uuid, sizeof uuid);
        printf("gpu %u %s %llu %s\n", i, uuid, memory.total, name);
    }
    printf("end\n");
    return 0;
}

static void memory_of(unsigned i)
{
    struct memory_v2 new = {.version = MEMORY_V2};
    struct memory_v1 old;
    if (memory_v2 && memory_v2(devices[i], &new) == SUCCESS)
        printf("used %u %llu\n", i, new.used); /* without what the driver reserves, as nvidia-smi has it */
    else if (memory_v1(devices[i], &old) == SUCCESS)
        printf("used %u %llu\n", i, old.used);
}

static void processes_of(unsigned i)
{
    static unsigned char room[MAX_PROCESSES * sizeof(struct process_v2)];
    for (int kind = 0; kind < 2; kind++) {
        struct lister l = listers[kind];
        if (!l.list)
            continue;
        unsigned n = sizeof room / l.size;
        int code = l.list(devices[i], &n, room);
        if (code == INSUFFICIENT_SIZE)
            printf("note more than %d processes on a device\n", MAX_PROCESSES);
        if (code != SUCCESS)
            continue;
        for (unsigned p = 0; p < n; p++) {
            struct process_v1 process; /* both versions begin with it */
            memcpy(&process, room + p * l.size, sizeof process);
            if (process.used == NOT_AVAILABLE)
                printf("note the driver does not say what each process holds\n");
            else
                printf("process %u %u %llu\n", i, process.pid, process.used);
        }
    }
}

static void sample(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("sample %lld\n", (long long)now.tv_sec * 1000000000 + now.tv_nsec);
    for (unsigned i = 0; i < count; i++) {
        struct utilization u;
        unsigned value, pending;
        if (!devices[i])
            continue;
        memory_of(i);
        if (utilization && utilization(devices[i], &u) == SUCCESS)
            printf("util %u %u\n", i, u.gpu);
        if (temperature && temperature(devices[i], TEMPERATURE_GPU, &value) == SUCCESS)
            printf("temp %u %u\n", i, value);
        if (power && power(devices[i], &value) == SUCCESS)
            printf("power %u %u\n", i, value);
        if (mig_mode && mig_mode(devices[i], &value, &pending) == SUCCESS && value == MIG_ENABLED)
            printf("note device %u is split (MIG): what each process holds is not seen\n", i);
        processes_of(i);
    }
    printf("end\n");
}

static int run(int argc, char **argv, char **environment)
{
    (void)argc, (void)argv, (void)environment;
    static char buffer[1 << 16];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    int failed = start();
    fflush(stdout);
    char question;
    while (!failed && read(0, &question, 1) == 1) {
        sample();
        if (fflush(stdout) != 0)
            break;
    }
    return failed;
}

/* The entry point, written out: the C library's own would ask for a symbol of glibc 2.34. */
int __libc_start_main(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

__attribute__((used, noreturn)) static void begin(long *stack, void (*finish)(void))
{
    __libc_start_main(run, (int)stack[0], (char **)(stack + 1), 0, 0, finish, stack);
    __builtin_unreachable();
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n xor %ebp, %ebp\n mov %rsp, %rdi\n mov %rdx, %rsi\n and $-16, %rsp\n call begin\n");
#else
__asm__(".globl _start\n_start:\n mov x29, #0\n mov x30, #0\n mov x1, x0\n mov x0, sp\n bl begin\n");
#endif
