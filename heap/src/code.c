#include "code.h"

#include <string.h>

#define SLOTS (1u << 15)
#define PROBES 16
#define MAX_TEXT 1024u          /* bytes of UTF-8 of a file name or a function's name */
#define MAX_LINES (64u << 10)   /* bytes of a line table; a longer one is left out: first line only */

/* Known code objects. A slot's value is fingerprint << 32 | number, written at once, so that a
 * reader never pairs one object's fingerprint with another's number. */
static struct { uintptr_t code; uint64_t value; } slots[SLOTS];
static uint32_t last;

void ht_code_reset(void) {
    if (last)
        memset(slots, 0, sizeof slots);
    last = 0;
}

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
    return hash ^ (hash >> 29);
}

/* A line table up to 64 bytes enters whole, of a longer one its beginning and its end. Each cache line
 * of it is a miss, for every frame of every sample. */
static uint64_t mix_lines(uint64_t hash, const char *data, size_t size) {
    uint64_t word = 0;
    hash = mix(hash, size);
    if (size < sizeof word) {
        memcpy(&word, data, size);
        return mix(hash, word);
    }
    size_t first = size <= 64 ? size - sizeof word : 3 * sizeof word;
    for (size_t at = 0; at < first; at += sizeof word) {
        memcpy(&word, data + at, sizeof word);
        hash = mix(hash, word);
    }
    memcpy(&word, data + size - sizeof word, sizeof word);
    return mix(hash, word);
}

/* A code object's memory may come to hold another one. Same place, same strings, same first line
 * and the same line table: the same for every purpose of ours. */
static uint32_t fingerprint(const struct ht_layout *at, const char *code) {
    const char *lines = (const char *)ht_word_at(code, at->code_lines);
    uint64_t hash = mix((uint32_t)ht_int_at(code, at->code_firstline), ht_word_at(code, at->code_filename));
    hash = mix(hash, ht_word_at(code, at->code_name));
    return (uint32_t)(mix_lines(hash, lines + at->bytes_data, ht_word_at(lines, at->bytes_size)) >> 32);
}

static uint32_t character(const char *data, int kind, size_t i) {
    uint16_t two;
    uint32_t four;
    if (kind == 1)
        return (uint8_t)data[i];
    if (kind == 2) {
        memcpy(&two, data + 2 * i, 2);
        return two;
    }
    memcpy(&four, data + 4 * i, 4);
    return four;
}

/* A lone surrogate (how Python keeps undecodable bytes of a file name) becomes U+FFFD. */
static uint32_t encode(uint32_t c, char *into) {
    if (c < 0x80) {
        into[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        into[0] = (char)(0xc0 | c >> 6);
        into[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c >= 0xd800 && c < 0xe000)
        c = 0xfffd;
    if (c < 0x10000) {
        into[0] = (char)(0xe0 | c >> 12);
        into[1] = (char)(0x80 | (c >> 6 & 63));
        into[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    into[0] = (char)(0xf0 | (c >> 18 & 7));
    into[1] = (char)(0x80 | (c >> 12 & 63));
    into[2] = (char)(0x80 | (c >> 6 & 63));
    into[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* The text of a str object as UTF-8, at most MAX_TEXT bytes. state: interned 2 bits, kind 3,
 * compact 1, ascii 1. Text that is not compact lies elsewhere (only before 3.12). */
static uint32_t text(const struct ht_layout *at, const char *object, char *into) {
    uint32_t state = (uint32_t)ht_int_at(object, at->text_state), used = 0;
    size_t length = ht_word_at(object, at->text_length);
    int kind = state >> 2 & 7;
    const char *data = object + (state & HT_TEXT_ASCII ? at->text_ascii : at->text_compact);
    if (!(state & 32))
        data = at->text_legacy == HT_NO_FIELD ? NULL : (const char *)ht_word_at(object, at->text_legacy);
    if (!data || (kind != 1 && kind != 2 && kind != 4))
        return 0;
    char one[4];
    for (size_t i = 0; i < length; i++) {
        uint32_t bytes = encode(character(data, kind, i), one);
        if (used + bytes > MAX_TEXT)
            break;
        memcpy(into + used, one, bytes);
        used += bytes;
    }
    return used;
}

static int tell(struct ht_channel *channel, const struct ht_layout *at, const char *code, uint32_t number) {
    char filename[MAX_TEXT], name[MAX_TEXT];
    uint32_t filename_bytes = text(at, (const char *)ht_word_at(code, at->code_filename), filename);
    uint32_t name_bytes = text(at, (const char *)ht_word_at(code, at->code_name), name);
    const char *lines = (const char *)ht_word_at(code, at->code_lines);
    size_t size = ht_word_at(lines, at->bytes_size);
    uint32_t table_bytes = size <= MAX_LINES && size < channel->mapped / 8 ? (uint32_t)size : 0;
    uint32_t payload = (uint32_t)(sizeof(struct ht_record) + sizeof(struct ht_code)) + filename_bytes + name_bytes;
    uint32_t bytes = (payload + table_bytes + 7) & ~7u;
    struct ht_record *record = ht_channel_reserve(channel, bytes, 0);
    if (!record)
        return 0;
    record->kind = HT_HEAP_CODE;
    record->aux = 0;
    record->time_ns = ht_now();
    struct ht_code head = {.code = number,
                           .first_line = ht_int_at(code, at->code_firstline),
                           .python = at->python,
                           .filename_bytes = (uint16_t)filename_bytes,
                           .name_bytes = (uint16_t)name_bytes,
                           .table_bytes = table_bytes};
    char *to = (char *)(record + 1);
    memcpy(to, &head, sizeof head);
    memcpy(to += sizeof head, filename, filename_bytes);
    memcpy(to += filename_bytes, name, name_bytes);
    memcpy(to += name_bytes, lines + at->bytes_data, table_bytes);
    memset(to + table_bytes, 0, bytes - payload - table_bytes);
    ht_channel_commit(record, bytes);
    return 1;
}

static uint32_t slot_of(uintptr_t code, uint32_t probe) {
    return ((uint32_t)((code >> 4) * 0x9E3779B97F4A7C15ull >> 49) + probe) & (SLOTS - 1);
}

uint32_t ht_code_number(struct ht_channel *channel, const struct ht_layout *at, const char *code) {
    uint32_t print = fingerprint(at, code), free_slot = SLOTS;
    for (uint32_t probe = 0; probe < PROBES; probe++) {
        uint32_t i = slot_of((uintptr_t)code, probe);
        uintptr_t known = __atomic_load_n(&slots[i].code, __ATOMIC_ACQUIRE);
        if (known == (uintptr_t)code) {
            uint64_t value = __atomic_load_n(&slots[i].value, __ATOMIC_ACQUIRE);
            if (value && (uint32_t)(value >> 32) == print)
                return (uint32_t)value;
            free_slot = i;
            break;
        }
        if (!known) {
            free_slot = i;
            break;
        }
    }
    /* Two threads that meet a code object at once both tell it, under two numbers: nobody waits. */
    uint32_t number = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    if (!tell(channel, at, code, number))
        return 0;
    if (free_slot == SLOTS) /* crowded: push out the oldest neighbour, it will be told again */
        free_slot = slot_of((uintptr_t)code, number % PROBES);
    __atomic_store_n(&slots[free_slot].value, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&slots[free_slot].code, (uintptr_t)code, __ATOMIC_RELEASE);
    __atomic_store_n(&slots[free_slot].value, (uint64_t)print << 32 | number, __ATOMIC_RELEASE);
    return number;
}
