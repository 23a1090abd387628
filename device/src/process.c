/* process.c: what this process has loaded: which CUDA, which real libraries behind our names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/loader.h"
#include "raw.h"

static int see_runtime(struct dl_phdr_info *info, size_t size, void *found) {
    const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    const char *so = name && strncmp(name, "/libcudart", 10) == 0 ? strstr(name, ".so.") : NULL;
    (void)size;
    if (so)
        *(int *)found = atoi(so + 4);
    return so != NULL;
}

/* The number in the file's name says 12 or 13; which 12, the real runtime answers without a driver. */
static int runtime_version(int major) {
    char name[32];
    int version = major * 1000;
    snprintf(name, sizeof name, "libcudart.so.%d", major);
    int (*ask)(int *) = (int (*)(int *))(uintptr_t)ht_real_symbol(name, "cudaRuntimeGetVersion");
    if (ask)
        ask(&version);
    return version;
}

int ht_cuda_version(void) {
    static int version;
    int known = __atomic_load_n(&version, __ATOMIC_ACQUIRE), major = 0;
    if (known)
        return known;
    dl_iterate_phdr(see_runtime, &major);
    if (!major)
        return 13000; /* the runtime comes later, or never: not remembered */
    known = runtime_version(major);
    __atomic_store_n(&version, known, __ATOMIC_RELEASE);
    return known;
}

struct search { const char *file; char path[1024]; };
static int see_library(struct dl_phdr_info *info, size_t size, void *data) {
    struct search *search = data;
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    size_t length = strlen(search->file);
    (void)size;
    if (!slash || (search->file[length - 1] == '.' ? strncmp(slash + 1, search->file, length) : strcmp(slash + 1, search->file)))
        return 0;
    snprintf(search->path, sizeof search->path, "%s", info->dlpi_name);
    return 1;
}

void *ht_real_symbol(const char *library, const char *symbol) {
    struct search search = {library, ""};
    if (!dl_iterate_phdr(see_library, &search))
        return NULL;
    void *handle = ht_open_real(search.path, RTLD_LAZY | RTLD_NOLOAD);
    return handle ? ht_dlsym(handle, symbol) : NULL;
}

static __thread int forwarding;
void ht_forward_enter(void) { forwarding++; }
void ht_forward_leave(void) { forwarding--; }
int ht_forwarding(void) { return forwarding > 0; }
