/* native.h: return addresses of a thread that runs no Python code. */
#ifndef HT_NATIVE_H
#define HT_NATIVE_H
#include "../../include/hightide_channel.h"

#define HT_NATIVE_FRAMES 16

/* The caller of the allocator first, then what the chain of frame pointers gives. `hook` is the
 * frame of the function we stand in for (hooks.c keeps frame pointers): its return address is
 * always there, so at least 1. Code built without frame pointers ends the chain; every further
 * step is a checked read. */
int ht_native_frames(struct ht_frame *frames, const void *hook);
#endif
