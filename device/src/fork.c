/* fork.c: a child must find every lock free and what it guards whole, whatever other threads of its parent were at. So
 * a fork takes all of them, in the one order in which they may be taken at all: who holds a lock takes only locks
 * further down. The loader (dlopen, dlsym, dl_iterate_phdr) is asked with none of them held: a thread in a library's
 * constructor has the loader's own lock, and calls us.
 *
 * What a process has of its own beyond locks begins anew in the child (ht_table_in_child). The heap sampler's library
 * needs no place in this order: its locks are only tried, and its child's part (heap/src/process.c) touches none. */
#include "raw.h"

static pthread_mutex_t *const order[] = {
    &ht_mappings_lock, /* virtual.c: over ranges, shadows and the device table */
    &ht_streams_lock,  /* stream.c: over graphs */
    &ht_pools_lock,    /* pool.c: over ranges and the device table */
    &ht_shadows_lock,
    &ht_memory_lock, /* ranges: over the device table */
    &ht_images_lock,
    &ht_counters_lock,
    &ht_context_lock, /* table.c: making one */
    &ht_table_lock,
    &ht_threads_lock, /* lock.c: in front of the lock between processes */
    &ht_arena_lock,
};
enum { LOCKS = sizeof order / sizeof *order };

static void before(void) {
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_lock(order[i]);
}

static void in_parent(void) {
    for (int i = LOCKS; i-- > 0;)
        pthread_mutex_unlock(order[i]);
}

static void in_child(void) {
    ht_table_in_child();
    in_parent();
}

__attribute__((constructor)) static void start(void) { pthread_atfork(before, in_parent, in_child); }
