/* layout.h: where the fields of the interpreter's structures lie, for one minor version of CPython. */
#ifndef HT_LAYOUT_H
#define HT_LAYOUT_H
#include <stdint.h>
#include <string.h>

#define HT_NO_FIELD 0xffffffffu
#define HT_TEXT_ASCII 64 /* bit of a str object's state */

/* What a frame stores about its position. */
enum { HT_LASTI_BYTES, HT_LASTI_UNITS, HT_INSTRUCTION_POINTER };

/* What CPython 3.13 and later says about itself, in _Py_DebugOffsets at the start of _PyRuntime. */
#define HT_DEBUG_FIELDS(X) \
    X(runtime_size) X(runtime_finalizing) X(tstate_thread) X(tstate_frame) X(frame_previous) X(frame_code) \
    X(frame_instruction) X(frame_owner) X(code_filename) X(code_name) X(code_lines) X(code_firstline) \
    X(code_start) X(object_type) X(bytes_size) X(bytes_data) X(text_length) X(text_state) X(text_ascii)

struct ht_layout {
    uint16_t python;             /* 0x030b for 3.11 */
    uint8_t instruction;         /* HT_LASTI_... */
    uint8_t owner_shim;          /* from this owner on, frames are not Python code (3.12) */
    uint8_t code_tags;           /* low bits of frame_code that are tags (3.14) */
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
#define HT_FIELD(name) uint32_t name;
    struct { HT_DEBUG_FIELDS(HT_FIELD) } debug; /* where _Py_DebugOffsets has each; all 0 before 3.13 */
#undef HT_FIELD
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
