/* A stand-in for libnvidia-ml.so.1 with the published ABI: two devices, fixed answers. The test of
 * internal/sampler compiles it, so that the real helper is run against it. -DOLD leaves out what
 * drivers before 2020 lack; -DBROKEN lets nvmlInit_v2 fail as it does without the kernel's part;
 * -DHANGS never answers a question, as a device that fell off the bus. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct nvml_device { unsigned index; } *device;
static struct nvml_device devices[2] = {{0}, {1}};
static unsigned self(void);

int nvmlInit_v2(void)
{
#ifdef BROKEN
    return 9;
#else
    return 0;
#endif
}
const char *nvmlErrorString(int code) { return code == 9 ? "Driver Not Loaded" : "Unknown Error"; }
int nvmlSystemGetDriverVersion(char *text, unsigned n) { snprintf(text, n, "550.54.15"); return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, device *d) { *d = &devices[i]; return i < 2 ? 0 : 2; }
int nvmlDeviceGetName(device d, char *text, unsigned n) { snprintf(text, n, "NVIDIA Test %c", 'A' + d->index); return 0; }
int nvmlDeviceGetUUID(device d, char *text, unsigned n) { snprintf(text, n, "GPU-0000000%u", d->index); return 0; }

struct memory { unsigned long long total, free, used; };
int nvmlDeviceGetMemoryInfo(device d, struct memory *m)
{
    m->total = 80ull << 30;
    m->used = (3ull + d->index) << 30; /* with what the driver reserves */
    m->free = m->total - m->used;
    return 0;
}
struct utilization { unsigned gpu, memory; };
int nvmlDeviceGetUtilizationRates(device d, struct utilization *u) { u->gpu = 87; u->memory = 30; return d->index ? 3 : 0; /* not supported */ }
int nvmlDeviceGetTemperature(device d, int sensor, unsigned *t) { *t = 61 + d->index; return sensor == 0 ? 0 : 2; }
int nvmlDeviceGetPowerUsage(device d, unsigned *mw)
{
#ifdef HANGS
    pause();
#endif
    (void)d, *mw = 350123;
    return 0;
}

#ifdef OLD
struct process { unsigned pid; unsigned long long used; };
#define LIST nvmlDeviceGetComputeRunningProcesses
#else
struct process { unsigned pid; unsigned long long used; unsigned instance, compute; };
#define LIST nvmlDeviceGetComputeRunningProcesses_v3
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(device d, struct memory_v2 *m)
{
    if (m->version != 0x02000028)
        return 25; /* NVML_ERROR_ARGUMENT_VERSION_MISMATCH */
    *m = (struct memory_v2){m->version, 80ull << 30, 1ull << 30, (78ull - d->index) << 30, (2ull + d->index) << 30};
    return 0;
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(device d, unsigned *n, struct process *p)
{
    if (d->index)
        return 3;
    *n = 1;
    p[0] = (struct process){self(), 5ull << 20, ~0u, ~0u};
    return 0;
}
int nvmlDeviceGetMigMode(device d, unsigned *now, unsigned *later) { *now = *later = d->index; return 0; }
#endif

/* Two processes compute: the one named in PID_FILE, and a stranger. */
int LIST(device d, unsigned *n, struct process *p)
{
    if (*n < 2)
        return 7;
    *n = d->index ? 0 : 2;
    memset(p, 0xff, 2 * sizeof *p);
    p[0].pid = self(), p[0].used = 1500ull << 20;
    p[1].pid = 1, p[1].used = ~0ull;
    return 0;
}

static unsigned self(void)
{
    unsigned pid = 0;
    FILE *f = fopen(PID_FILE, "r");
    if (f && fscanf(f, "%u", &pid) != 1)
        pid = 0;
    if (f)
        fclose(f);
    return pid;
}
