/* counters.c: what a process's slot says beyond bytes: calls by name, reads of what nobody wrote by
 * line of the script. Written by this process alone, so nothing here takes the lock of the device table. */
#include <stdio.h>
#include <string.h>

#include "raw.h"

pthread_mutex_t ht_counters_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- counters by name */

static uint32_t hash_name(const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    return hash;
}

/* The entry of a name, made if there is room; 0 is none, else its number plus one. */
static uint32_t entry_of(struct ht_gpu_process *slot, const char *name, uint32_t kind) {
    uint32_t hash = hash_name(name);
    for (uint32_t probe = 0; probe < HT_GPU_CALLS; probe++) {
        uint32_t i = (hash + probe) % HT_GPU_CALLS;
        struct ht_gpu_call *call = &slot->calls[i];
        if (call->name[0] && strncmp(call->name, name, sizeof call->name - 1) != 0)
            continue;
        if (!call->name[0]) {
            snprintf(call->name, sizeof call->name, "%s", name);
            call->kind = kind;
        }
        return i + 1;
    }
    return 0;
}

void ht_count(struct ht_call_site *site, const char *name) {
    struct ht_gpu_process *slot = ht_slot();
    if (!slot)
        return;
    uint32_t generation = (uint32_t)ht_generation();
    if (__atomic_load_n(&site->generation, __ATOMIC_ACQUIRE) != generation) {
        if (site->kind == HT_CALL_REFUSED)
            ht_say("%s is not modelled and fails", name);
        pthread_mutex_lock(&ht_counters_lock);
        if (site->generation != generation) { /* another thread may have been here meanwhile, and others read what it wrote */
            site->slot = entry_of(slot, name, site->kind);
            __atomic_store_n(&site->generation, generation, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&ht_counters_lock);
    }
    if (site->slot)
        __atomic_fetch_add(&slot->calls[site->slot - 1].count, 1, __ATOMIC_RELAXED);
    else
        __atomic_fetch_add(&slot->calls_lost, 1, __ATOMIC_RELAXED);
}

/* ---- reads of what nobody wrote, by line */

static struct ht_gpu_read *read_of(struct ht_gpu_process *slot, const struct ht_line *line) {
    for (int i = 0; i < HT_GPU_READS; i++) {
        struct ht_gpu_read *read = &slot->reads[i];
        if (!read->count) {
            memcpy(read->file, line->file, sizeof read->file);
            memcpy(read->function, line->function, sizeof read->function);
            read->line = line->line;
            read->smallest = UINT32_MAX;
            return read;
        }
        if (read->line == line->line && strcmp(read->file, line->file) == 0)
            return read;
    }
    return NULL;
}

void ht_count_read(uint64_t bytes) {
    struct ht_gpu_process *slot = ht_slot();
    struct ht_line line;
    if (!slot)
        return;
    ht_python_line(&line);
    pthread_mutex_lock(&ht_counters_lock);
    struct ht_gpu_read *read = read_of(slot, &line);
    if (read) {
        if (bytes < read->smallest)
            read->smallest = (uint32_t)bytes;
        read->bytes += bytes;
        __atomic_store_n(&read->count, read->count + 1, __ATOMIC_RELEASE);
    }
    slot->reads_count++;
    slot->reads_bytes += bytes;
    pthread_mutex_unlock(&ht_counters_lock);
}

void ht_count_shadow(int64_t kept, uint64_t dropped) {
    struct ht_gpu_process *slot = ht_slot();
    if (!slot)
        return;
    __atomic_fetch_add(&slot->shadow_bytes, (uint64_t)kept, __ATOMIC_RELAXED);
    __atomic_fetch_add(&slot->shadow_dropped, dropped, __ATOMIC_RELAXED);
}
