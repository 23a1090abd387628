/* spec.c: which GPUs there are, from a text.
 *
 *     count=2;name=NVIDIA A10;slug=a10;memory=23729274880;context=360710144;cc=8.6;sms=72|count=1;name=...
 *
 * Kinds of device are parted by '|', figures by ';'. docs/formats/device.md lists the keys. What is
 * not told follows from the compute capability. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "raw.h"

/* The value of a key in "a=1;b=2|..." up to the next '|'; its length, or -1. */
static long find(const char *text, const char *key, const char **value) {
    size_t n = strlen(key);
    for (const char *at = text; *at && *at != '|';) {
        size_t length = strcspn(at, ";|");
        if (length > n && at[n] == '=' && memcmp(at, key, n) == 0) {
            *value = at + n + 1;
            return (long)(length - n - 1);
        }
        at += length + (at[length] == ';');
    }
    return -1;
}

uint64_t ht_spec_number(const char *text, const char *key, uint64_t absent) {
    const char *value;
    if (find(text, key, &value) <= 0)
        return absent;
    char *end;
    uint64_t found = strtoull(value, &end, 10);
    return end == value ? absent : found;
}

static void copy_text(char *into, size_t room, const char *text, const char *key, const char *absent) {
    const char *value;
    long n = find(text, key, &value);
    if (n <= 0) {
        value = absent;
        n = (long)strlen(absent);
    }
    if ((size_t)n >= room)
        n = (long)room - 1;
    memcpy(into, value, (size_t)n);
    into[n] = 0;
}

/* What the CUDA programming guide's table of technical specifications gives for a compute capability. */
struct limits { unsigned cc, threads, blocks, shared_sm, optin; };
static const struct limits table[] = {
    {60, 2048, 32, 64, 48}, {61, 2048, 32, 96, 48}, {70, 2048, 32, 96, 96}, {75, 1024, 16, 64, 64},
    {80, 2048, 32, 164, 163}, {86, 1536, 16, 100, 99}, {87, 1536, 16, 164, 163}, {89, 1536, 24, 100, 99},
    {90, 2048, 32, 228, 227}, {100, 2048, 32, 228, 227}, {103, 2048, 32, 228, 227}, {110, 1536, 24, 228, 227},
    {120, 1536, 24, 100, 99}, {121, 1536, 24, 100, 99},
};
static struct limits limits_of(unsigned cc) {
    struct limits found = table[0];
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].cc <= cc)
            found = table[i];
    return found;
}

static void capability(struct ht_gpu *gpu, const char *text) {
    const char *value;
    gpu->cc_major = 8;
    gpu->cc_minor = 0;
    if (find(text, "cc", &value) > 0) {
        gpu->cc_major = (uint32_t)strtoul(value, NULL, 10);
        const char *dot = strchr(value, '.');
        if (dot)
            gpu->cc_minor = (uint32_t)strtoul(dot + 1, NULL, 10);
    }
}

static void fill(struct ht_gpu *gpu, const char *text) {
    copy_text(gpu->name, sizeof gpu->name, text, "name", "Imaginary GPU");
    copy_text(gpu->slug, sizeof gpu->slug, text, "slug", "");
    copy_text(gpu->driver_name, sizeof gpu->driver_name, text, "driver_name", "595.58.03");
    gpu->total = ht_spec_number(text, "memory", 24ull << 30);
    gpu->reserved = ht_spec_number(text, "reserved", 0);
    gpu->context = ht_spec_number(text, "context", 0);
    capability(gpu, text);
    struct limits limits = limits_of(gpu->cc_major * 10 + gpu->cc_minor);
    gpu->sm_count = (uint32_t)ht_spec_number(text, "sms", 80);
    gpu->threads_per_sm = (uint32_t)ht_spec_number(text, "threads_per_sm", limits.threads);
    gpu->blocks_per_sm = (uint32_t)ht_spec_number(text, "blocks_per_sm", limits.blocks);
    gpu->shared_per_block = (uint32_t)ht_spec_number(text, "shared_per_block", 48u << 10);
    gpu->shared_optin = (uint32_t)ht_spec_number(text, "shared_optin", limits.optin << 10);
    gpu->shared_per_sm = (uint32_t)ht_spec_number(text, "shared_per_sm", limits.shared_sm << 10);
    gpu->l2_bytes = (uint32_t)ht_spec_number(text, "l2", 6u << 20);
    gpu->clock_khz = (uint32_t)ht_spec_number(text, "clock_khz", 1500000);
    gpu->memory_khz = (uint32_t)ht_spec_number(text, "memory_khz", 6000000);
    gpu->bus_bits = (uint32_t)ht_spec_number(text, "bus_bits", 384);
    gpu->driver = (uint32_t)ht_spec_number(text, "driver", 13020);
    gpu->ecc = (uint32_t)ht_spec_number(text, "ecc", 0);
    gpu->pci_device = (uint32_t)ht_spec_number(text, "pci_device", 0x10de);
    size_t n = strcspn(text, "|");
    if (n >= sizeof gpu->spec)
        n = sizeof gpu->spec - 1;
    memcpy(gpu->spec, text, n);
    gpu->spec[n] = 0;
}

static void place(struct ht_gpu *gpu, uint32_t index) {
    gpu->index = index;
    gpu->used = gpu->peak = gpu->reserved;
    snprintf(gpu->bus, sizeof gpu->bus, "0000:%02x:00.0", index + 1);
    snprintf(gpu->uuid, sizeof gpu->uuid, "GPU-68696768-7469-4465-8000-%012x", index + 1);
}

int ht_spec_read(const char *text, struct ht_gpu_header *header, struct ht_gpu *gpus) {
    uint32_t made = 0;
    for (const char *at = text; *at; at += *at == '|') {
        uint64_t count = ht_spec_number(at, "count", 1);
        for (uint64_t i = 0; i < count && made < HT_GPU_DEVICES; i++, made++) {
            fill(&gpus[made], at);
            place(&gpus[made], made);
        }
        at += strcspn(at, "|");
    }
    header->device_count = made;
    return made > 0;
}
