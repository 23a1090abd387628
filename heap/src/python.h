/* python.h: the calling thread's own Python frames, read as plain memory.
 *
 * No Python API is called, no reference taken, nothing allocated, and it does not matter who holds
 * the GIL: a thread inside malloc does not push or pop its own frames, and nobody else may.
 */
#ifndef HT_PYTHON_H
#define HT_PYTHON_H
#include "channel.h"

/* Innermost first, at most HT_MAX_FRAMES; sets *truncated. 0: this thread runs no Python code.
 * -1: there is no room to tell a code object, so the record must be dropped. */
int ht_python_frames(struct ht_channel *channel, struct ht_frame *frames, int *truncated, uint64_t now);

/* Numbers of code objects mean others from now on. */
void ht_python_reset(void);
#endif
