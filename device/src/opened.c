/* opened.c: libraries that are opened by name or by path: dlopen, ctypes.CDLL, RTLD_DEEPBIND.
 *
 * A search in such a handle would pass by a preloaded library. So our dlopen stands first in the process: of a library
 * that is answered for here it opens the real one, as its caller would have found it, and returns the handle of ours.
 * What is forwarded finds the real one loaded. Where the caller would have found none there is none.
 *
 *     dlopen.c ─▶ ht_opened ─▶ one of `answered`: the real one is opened, ours is returned
 *                         └──▶ anything else: a jump to the loader's dlopen, which looks at its caller's RUNPATH
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "../../common/loader.h"
#include "../../common/sys.h"
#include "raw.h"

__asm__(".symver old_dladdr1, dladdr1@" HT_SINCE("2.3.3"));
__asm__(".symver old_dlinfo, dlinfo@" HT_SINCE("2.3.3"));
extern int old_dladdr1(const void *, Dl_info *, void **, int);
extern int old_dlinfo(void *, int, void *);

/* The libraries that this one answers for, without what follows their names. Not libnvrtc and libnvJitLink: compiling
 * needs no device, so that who opens them has the real ones. */
static const struct answered { const char *name; enum { OF_DRIVER = 1, OF_TOOLKIT } kind; } answered[] = {
    {"libcuda", OF_DRIVER}, {"libnvidia-ml", OF_DRIVER}, {"libcudart", OF_TOOLKIT}, {"libcublas", OF_TOOLKIT},
    {"libcublasLt", OF_TOOLKIT}, {"libcudnn", OF_TOOLKIT}, {"libcufft", OF_TOOLKIT}, {"libcusolver", OF_TOOLKIT},
    {"libcusolverMg", OF_TOOLKIT}, {"libcusparse", OF_TOOLKIT}, {"libcusparseLt", OF_TOOLKIT}, {"libcurand", OF_TOOLKIT},
    {"libnccl", OF_TOOLKIT}, {"libcupti", OF_TOOLKIT}, {"libcufile", OF_TOOLKIT},
};

/* Which of them a file is: libcublas.so, libcublas.so.12, libcudnn_graph.so.9, and as wheels carry their own copies:
 * libcudart-1b184726.so.11.0, libcudart.e8e8b82a.so.12. */
static int kind_of(const char *path) {
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path, *end = strstr(file, ".so");
    if (!end || (end[3] && end[3] != '.'))
        return 0;
    for (unsigned i = 0; i < sizeof answered / sizeof *answered; i++) {
        size_t n = strlen(answered[i].name);
        if (strncmp(file, answered[i].name, n) == 0 && strchr("-_.", file[n]))
            return answered[i].kind;
    }
    return 0;
}

int ht_in_real_library(const void *code) {
    Dl_info info;
    struct link_map *map = NULL;
    if (!old_dladdr1(code, &info, (void **)&map, RTLD_DL_LINKMAP) || !map || !map->l_name)
        return 0;
    return kind_of(map->l_name) == OF_TOOLKIT;
}

/* ---- the loader's own dlopen, past ours */

typedef void *open_library(const char *, int);
open_library *ht_next_dlopen; /* read by dlopen.c */

static open_library *next(void) {
    open_library *known = __atomic_load_n(&ht_next_dlopen, __ATOMIC_ACQUIRE);
    if (!known) {
        known = (open_library *)(uintptr_t)ht_dlsym(RTLD_NEXT, "dlopen");
        __atomic_store_n(&ht_next_dlopen, known, __ATOMIC_RELEASE);
    }
    return known;
}

void *ht_open_real(const char *path, int flags) { return next() ? next()(path, flags) : NULL; }

/* ---- the real one, as the caller would have found it */

/* The first file of that name in the folders where the loader looks for what `code`'s library opens. */
static int find_for(const void *code, const char *name, char *path, size_t room) {
    Dl_info info;
    struct link_map *map = NULL;
    Dl_serinfo size, *folders;
    int found = 0;
    if (!old_dladdr1(code, &info, (void **)&map, RTLD_DL_LINKMAP) || !map || old_dlinfo(map, RTLD_DI_SERINFOSIZE, &size))
        return 0;
    folders = ht_new(size.dls_size);
    if (!folders)
        return 0;
    *folders = size;
    if (!old_dlinfo(map, RTLD_DI_SERINFO, folders))
        for (unsigned i = 0; i < folders->dls_cnt && !found; i++) {
            int n = snprintf(path, room, "%s/%s", folders->dls_serpath[i].dls_name, name);
            found = n > 0 && (size_t)n < room && sys_exists(path);
        }
    ht_drop(folders, size.dls_size);
    return found;
}

static void *open_for(const void *code, const char *name, int flags) {
    char path[4096];
    void *real = ht_open_real(name, flags | RTLD_NOLOAD);
    if (!real && !(flags & RTLD_NOLOAD))
        real = ht_open_real(!strchr(name, '/') && find_for(code, name, path, sizeof path) ? path : name, flags);
    return real;
}

/* ---- ours */

void *ht_own_handle(void) {
    Dl_info info;
    struct link_map *map = NULL;
    if (!old_dladdr1((const void *)(uintptr_t)ht_own_handle, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return NULL;
    return ht_open_real(*map->l_name ? map->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
}

void *ht_opened(const char *name, int flags, const void *caller) {
    if (!next())
        return NULL;
    int kind = name ? kind_of(name) : 0;
    if (!kind || ht_in_real_library(caller)) /* a real library opens its own parts */
        return HT_PASS_ON;
    if (kind == OF_TOOLKIT && !open_for(caller, name, flags & ~RTLD_DEEPBIND))
        return HT_PASS_ON; /* and the loader says why there is none */
    ht_say("%s is opened: ours", name);
    return ht_own_handle();
}
