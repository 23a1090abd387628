#include "python.h"

#include "code.h"
#include "interpreter.h"

#define OWNED_BY_GENERATOR 1
#define DEEPEST 100000 /* frames to look at, shims and all: a bound, not a limit one meets */

/* Byte offset of the running instruction in co_code, for every version. 3.10 counts code units. */
static int32_t position(const struct ht_layout *at, const char *frame, const char *code) {
    switch (at->instruction) {
    case HT_LASTI_BYTES:
        return ht_int_at(frame, at->frame_instruction);
    case HT_LASTI_UNITS:
        return ht_int_at(frame, at->frame_instruction) * 2;
    default:
        return (int32_t)(ht_word_at(frame, at->frame_instruction) - (uintptr_t)(code + at->code_start));
    }
}

/* Frames that Python's own tracebacks do not show: entries from C, and what is still being set up. */
static int hidden(const struct ht_layout *at, const char *frame, const char *code, int32_t lasti) {
    if (at->frame_owner == HT_NO_FIELD)
        return 0;
    uint8_t owner = (uint8_t)frame[at->frame_owner];
    if (owner >= at->owner_shim)
        return 1;
    return owner != OWNED_BY_GENERATOR && lasti < ht_int_at(code, at->code_traceable) * 2;
}

int ht_python_frames(struct ht_channel *channel, struct ht_frame *frames, int *truncated) {
    const struct ht_layout *at = &ht_interpreter.layout;
    const char *tstate = ht_thread_state();
    int n = 0;
    *truncated = 0;
    if (!tstate)
        return 0;
    const char *frame = ht_innermost(tstate);
    for (int depth = 0; ht_sane(frame) && depth < DEEPEST; depth++, frame = (const char *)ht_word_at(frame, at->frame_previous)) {
        const char *code = ht_code_of(at, frame);
        if (!ht_sane(code) || ht_word_at(code, at->object_type) != ht_interpreter.code_type)
            continue;
        int32_t lasti = position(at, frame, code);
        if (hidden(at, frame, code, lasti))
            continue;
        if (n == HT_MAX_FRAMES) {
            *truncated = 1;
            break;
        }
        uint32_t number = ht_code_number(channel, at, code);
        if (!number)
            return -1;
        frames[n++] = (struct ht_frame){number, lasti, 0};
    }
    return n;
}
