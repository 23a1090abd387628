#include "python.h"

#include <string.h>

#include "code.h"
#include "../../common/interpreter.h"

#define OWNED_BY_GENERATOR 1
#define DEEPEST 100000 /* frames to look at, shims and all: a bound, not a limit one meets */

/* Frames that Python's own tracebacks do not show: entries from C, and what is still being set up. */
static int hidden(const struct ht_layout *at, const char *frame, const char *code, int32_t lasti) {
    if (at->frame_owner == HT_NO_FIELD)
        return 0;
    uint8_t owner = (uint8_t)frame[at->frame_owner];
    if (owner >= at->owner_shim)
        return 1;
    return owner != OWNED_BY_GENERATOR && lasti < ht_int_at(code, at->code_traceable) * 2;
}

/* Frames seen a moment ago. Most of a stack is in the next sample as it was. To look at a code
 * object and its line table closely costs several cache misses a frame, the program's as well as ours.
 * The same place, code, line table and instruction are the same frame, unless a function was thrown away
 * and another made whose parts all lie where its own did. So after TRUSTED_NS it is looked at closely again.
 * Code that is run once and thrown away (`<module>`, a notebook's cell) always is.
 * For one thread at a time; another that comes meanwhile does without. */
#define RECENT 256
#define TRUSTED_NS 100000000u
static struct recent {
    const char *frame, *code;
    uintptr_t lines;
    uint64_t until;
    int32_t lasti;
    uint32_t number;
} recent[RECENT];
static uint32_t walking;

void ht_python_reset(void) {
    memset(recent, 0, sizeof recent);
    __atomic_store_n(&walking, 0, __ATOMIC_RELEASE);
}

static struct recent *recent_of(const char *frame) {
    return &recent[(uintptr_t)frame * 0x9E3779B97F4A7C15ull >> 56];
}

static int still(const struct ht_layout *at, const struct recent *seen, const char *frame, const char *code, int32_t lasti, uint64_t now) {
    return seen->frame == frame && seen->code == code && seen->lasti == lasti && now < seen->until &&
           seen->lines == ht_word_at(code, at->code_lines);
}

/* Whether this is the code of a function with a name. */
static int lasting(const struct ht_layout *at, const char *code) {
    const char *name = (const char *)ht_word_at(code, at->code_name);
    return ht_int_at(name, at->text_state) & HT_TEXT_ASCII && name[at->text_ascii] != '<';
}

/* One frame's entry: 1; 0: none is to be shown; -1: there is no room to tell its code. */
static int look(struct ht_channel *channel, const char *frame, const char *code, int32_t lasti, uint32_t *number) {
    const struct ht_layout *at = &ht_interpreter.layout;
    if (ht_word_at(code, at->object_type) != ht_interpreter.code_type || hidden(at, frame, code, lasti))
        return 0;
    *number = ht_code_number(channel, at, code);
    return *number ? 1 : -1;
}

static int walk(struct ht_channel *channel, const char *frame, struct ht_frame *frames, int *truncated, int mine, uint64_t now) {
    const struct ht_layout *at = &ht_interpreter.layout;
    int n = 0;
    for (int depth = 0; ht_sane(frame) && depth < DEEPEST; depth++, frame = (const char *)ht_word_at(frame, at->frame_previous)) {
        const char *code = ht_code_of(at, frame);
        if (!ht_sane(code))
            continue;
        int32_t lasti = ht_position(at, frame, code);
        struct recent *seen = recent_of(frame);
        uint32_t number;
        if (mine && still(at, seen, frame, code, lasti, now)) {
            number = seen->number;
        } else {
            int shown = look(channel, frame, code, lasti, &number);
            if (shown < 0)
                return -1;
            if (!shown)
                continue;
            if (mine && lasting(at, code))
                *seen = (struct recent){frame, code, ht_word_at(code, at->code_lines), now + TRUSTED_NS, lasti, number};
        }
        if (n == HT_MAX_FRAMES) {
            *truncated = 1;
            break;
        }
        frames[n++] = (struct ht_frame){number, lasti, 0};
    }
    return n;
}

int ht_python_frames(struct ht_channel *channel, struct ht_frame *frames, int *truncated, uint64_t now) {
    const char *tstate = ht_thread_state();
    *truncated = 0;
    if (!tstate)
        return 0;
    int mine = !__atomic_exchange_n(&walking, 1, __ATOMIC_ACQUIRE);
    int n = walk(channel, ht_innermost(tstate), frames, truncated, mine, now);
    if (mine)
        __atomic_store_n(&walking, 0, __ATOMIC_RELEASE);
    return n;
}
