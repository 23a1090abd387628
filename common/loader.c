#define _GNU_SOURCE
#include "loader.h"

#include <dlfcn.h>
#include <stddef.h>

#include "since.h"

/* The first that each platform had: newer ones are not in every libc. */
__asm__(".symver old_dlsym, dlsym@" HT_SINCE("2.2.5"));
__asm__(".symver old_getspecific, pthread_getspecific@" HT_SINCE("2.2.5"));
extern void *old_dlsym(void *, const char *) __attribute__((weak));
extern void *old_getspecific(pthread_key_t) __attribute__((weak));

void *ht_dlsym(void *handle, const char *name) { return old_dlsym ? old_dlsym(handle, name) : NULL; }
void *ht_getspecific(pthread_key_t key) { return old_getspecific ? old_getspecific(key) : NULL; }
void *ht_symbol(const char *name) { return ht_dlsym(RTLD_DEFAULT, name); }
