/* loader.h: what the dynamic loader and libpthread give, by the one version of each symbol that glibc 2.17 and newer
 * ones both have. dlsym and its like moved to libc in 2.34 and took a new version there. */
#ifndef HT_LOADER_H
#define HT_LOADER_H
#include <pthread.h>

/* NULL also where the process has no loader to ask: a program may have been linked without it. */
void *ht_dlsym(void *handle, const char *name);
void *ht_getspecific(pthread_key_t key);

void *ht_symbol(const char *name); /* a symbol of this process, or NULL */
#endif
