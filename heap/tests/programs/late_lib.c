/* A library of the program late.c: allocates, and opens another by its own path of libraries (RUNPATH). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void *make(size_t size) { return memset(malloc(size), 1, size); }

static void (*const give_back)(void *) = free; /* a slot that is data */
void drop(void *p) { give_back(p); }

void *make_by(const char *library, size_t size) {
    void *handle = dlopen(library, RTLD_NOW);
    void *(*other)(size_t) = handle ? (void *(*)(size_t))dlsym(handle, "make") : NULL;
    return other ? other(size) : NULL;
}
