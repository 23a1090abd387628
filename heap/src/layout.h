/* layout.h: where the fields of the interpreter's structures lie, for one minor version of CPython. */
#ifndef HT_LAYOUT_H
#define HT_LAYOUT_H
#include <stdint.h>
#include <string.h>

#define HT_NO_FIELD 0xffffffffu

/* What a frame stores about its position. */
enum { HT_LASTI_BYTES, HT_LASTI_UNITS, HT_INSTRUCTION_POINTER };

struct ht_layout {
    uint16_t python;             /* 0x030b for 3.11 */
    uint8_t instruction;         /* HT_LASTI_... */
    uint8_t owner_shim;          /* owner of frames that are no Python code */
    uint8_t tagged;              /* 1: low bits of frame_code are tags (3.14) */
    uint32_t runtime_size, runtime_key, runtime_finalizing; /* in _PyRuntime */
    uint32_t tstate_thread;      /* pthread_self() of the thread */
    uint32_t tstate_frame;       /* innermost frame, or the cframe that has it */
    uint32_t cframe_frame;
    uint32_t frame_previous, frame_code, frame_instruction, frame_owner;
    uint32_t code_filename, code_name, code_lines, code_firstline;
    uint32_t code_start;         /* first instruction; frames of 3.11+ point at theirs */
    uint32_t code_traceable;     /* index of the first instruction that counts as running */
    uint32_t object_type;
    uint32_t bytes_size, bytes_data;
    uint32_t text_length, text_state, text_ascii, text_compact, text_legacy;
};

static inline uintptr_t ht_word_at(const char *base, uint32_t offset) {
    uintptr_t value;
    memcpy(&value, base + offset, sizeof value);
    return value;
}
static inline int32_t ht_int_at(const char *base, uint32_t offset) {
    int32_t value;
    memcpy(&value, base + offset, sizeof value);
    return value;
}
#endif
