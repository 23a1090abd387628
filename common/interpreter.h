/* interpreter.h: the Python interpreter in this process: where it is and how to read it. */
#ifndef HT_INTERPRETER_H
#define HT_INTERPRETER_H
#include <stdint.h>

#include "layout.h"

/* Looks for an interpreter in this process; at start-up, and again when the agent asks for the
 * word (an interpreter that was loaded later, as in embedding). Never from an allocation. */
void ht_interpreter_find(void);

/* HT_HEAP_NO_PYTHON and its like: why stacks are missing, if they are. */
uint64_t ht_interpreter_flags(void);

struct ht_interpreter {
    struct ht_layout layout;
    const char *runtime; /* &_PyRuntime; NULL: no Python, or none that we can read */
    uintptr_t code_type, text_type, bytes_type;
};
extern struct ht_interpreter ht_interpreter;

/* The calling thread's own PyThreadState, read through the interpreter's thread-specific key, if
 * its frames may be read as plain memory; else NULL. */
const char *ht_thread_state(void);

/* The frame that runs now; NULL: none. */
const char *ht_innermost(const char *tstate);

/* f_code or f_executable without its tags. */
static inline const char *ht_code_of(const struct ht_layout *at, const char *frame) {
    return (const char *)(ht_word_at(frame, at->frame_code) & ~(uintptr_t)at->code_tags);
}

/* Byte offset of the running instruction in co_code, for every version. 3.10 counts code units. */
static inline int32_t ht_position(const struct ht_layout *at, const char *frame, const char *code) {
    switch (at->instruction) {
    case HT_LASTI_BYTES:
        return ht_int_at(frame, at->frame_instruction);
    case HT_LASTI_UNITS:
        return ht_int_at(frame, at->frame_instruction) * 2;
    default:
        return (int32_t)(ht_word_at(frame, at->frame_instruction) - (uintptr_t)(code + at->code_start));
    }
}

/* Whether this can be a pointer to an object at all. */
static inline int ht_sane(const char *pointer) {
    uintptr_t value = (uintptr_t)pointer;
    return value >= 4096 && value < (1ull << 47) && value % sizeof(void *) == 0;
}
#endif
