/* table.h: between the files that keep the device table: the file, the lock on it, what is written there. */
#ifndef HT_TABLE_H
#define HT_TABLE_H
#include "raw.h"

/* ---- lock.c */
/* Whether the process that began then (ht_process_start, its low half; 0: not known) still runs; also where /proc
 * cannot be read, as without a free file descriptor. */
int ht_lives(uint32_t pid, uint32_t start);
/* Between processes and threads. 1: taken from a holder that was killed, whose work may be half done. */
int ht_lock(struct ht_gpu_header *header);
void ht_unlock(struct ht_gpu_header *header);

/* ---- tablefile.c */
/* Whether an open file is one of this user's that nobody else can write: shared memory is a folder of everybody. */
int ht_own_file(int fd);
/* The table at $HIGHTIDE_DEVICE_TABLE, made from $HIGHTIDE_DEVICE_SPEC where there is none; private without a path.
 * `folder` gets the file's folder, "" without. NULL: no memory. */
struct ht_gpu_header *ht_table_open(char *folder, size_t room);
#endif
