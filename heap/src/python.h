/* python.h: the calling thread's own Python frames, read as plain memory.
 *
 * No Python API is called, no reference taken, nothing allocated, and it does not matter who holds
 * the GIL: a thread inside malloc does not push or pop its own frames, and nobody else may.
 */
#ifndef HT_PYTHON_H
#define HT_PYTHON_H
#include "channel.h"

/* Looks for an interpreter in this process; at start-up, and again when the agent asks for the
 * word (an interpreter that was loaded later, as in embedding). Never from an allocation. */
void ht_python_find(void);

uint64_t ht_python_flags(void); /* HT_HEAP_NO_PYTHON and its like */

/* Innermost first, at most HT_MAX_FRAMES; sets *truncated. 0: this thread runs no Python code.
 * -1: there is no room to tell a code object, so the record must be dropped. */
int ht_python_frames(struct ht_channel *channel, struct ht_frame *frames, int *truncated);
#endif
