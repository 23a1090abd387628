#define _GNU_SOURCE
#include "python.h"

#include <dlfcn.h>
#include <pthread.h>

#include "code.h"
#include "real.h"
#include "sys.h"

static const struct ht_layout layouts[] = {
#include "layouts.h"
};

#define OWNED_BY_GENERATOR 1

/* Found once, before main or while the agent asks; constant afterwards. */
static struct {
    struct ht_layout layout;
    const char *runtime;       /* &_PyRuntime; NULL: no Python */
    uintptr_t code_type, text_type, bytes_type;
} python;

enum { UNCHECKED, GOOD, BAD };
static int checked; /* whether the layout was seen to fit */
static uint64_t flags = HT_HEAP_NO_PYTHON;

/* "3.11.7 (main, ...": Py_GetVersion prints into a static buffer of its own, it takes no lock. */
static uint16_t version(const char *text) {
    unsigned minor = 0;
    if (!text || text[0] != '3' || text[1] != '.')
        return 0;
    for (text += 2; *text >= '0' && *text <= '9' && minor < 100; text++)
        minor = minor * 10 + (unsigned)(*text - '0');
    return (uint16_t)(0x300 | minor);
}

void ht_python_find(void) {
    if (python.runtime)
        return;
    const char *runtime = ht_symbol("_PyRuntime");
    const char *(*get_version)(void) = (const char *(*)(void))(uintptr_t)ht_symbol("Py_GetVersion");
    if (!runtime || !get_version)
        return;
    uint16_t minor = version(get_version());
    flags = HT_HEAP_UNKNOWN_PYTHON;
    for (unsigned i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (layouts[i].python != minor)
            continue;
        python.layout = layouts[i];
        python.code_type = (uintptr_t)ht_symbol("PyCode_Type");
        python.text_type = (uintptr_t)ht_symbol("PyUnicode_Type");
        python.bytes_type = (uintptr_t)ht_symbol("PyBytes_Type");
        if (!python.code_type || !python.text_type || !python.bytes_type)
            return;
        flags = 0;
        __atomic_store_n(&python.runtime, runtime, __ATOMIC_RELEASE);
    }
}

uint64_t ht_python_flags(void) { return __atomic_load_n(&flags, __ATOMIC_RELAXED); }

/* Py_tss_t is { int is_initialized; pthread_key_t key; }. */
static const char *thread_state(void) {
    const char *key = python.runtime + python.layout.runtime_key;
    if (ht_int_at(key, 0) != 1)
        return NULL;
    return ht_real.pthread_getspecific((pthread_key_t)ht_int_at(key, 4));
}

/* While the interpreter is torn down it frees the states of threads that still run. */
static int finalizing(void) { return ht_word_at(python.runtime, python.layout.runtime_finalizing) != 0; }

static const char *plain(uintptr_t pointer) {
    return (const char *)(pointer & ~(uintptr_t)(python.layout.tagged ? 3 : 0));
}

static int sane(const char *pointer) {
    uintptr_t value = (uintptr_t)pointer;
    return value >= 4096 && value < (1ull << 47) && value % sizeof(void *) == 0;
}

static const char *innermost(const char *tstate) {
    const struct ht_layout *at = &python.layout;
    const char *frame = (const char *)ht_word_at(tstate, at->tstate_frame);
    if (at->cframe_frame != HT_NO_FIELD && frame)
        frame = (const char *)ht_word_at(frame, at->cframe_frame);
    return frame;
}

static int peek_word(const char *base, uint32_t offset, uintptr_t *value) {
    return sane(base) && sys_peek(value, base + offset, sizeof *value);
}

static int peek_type(const char *object, uintptr_t type) {
    uintptr_t found;
    return peek_word(object, python.layout.object_type, &found) && found == type;
}

/* Does this frame hold what the layout says, down to the strings? Every read may fail. */
static int check_frame(const char *frame) {
    const struct ht_layout *at = &python.layout;
    uintptr_t code, filename, name, lines;
    if (!peek_word(frame, at->frame_code, &code))
        return 0;
    const char *object = plain(code);
    if (!peek_type(object, python.code_type))
        return at->owner_shim != 255 && sane(object); /* None, or a stub's executable */
    return peek_word(object, at->code_filename, &filename) && peek_type((const char *)filename, python.text_type) &&
           peek_word(object, at->code_name, &name) && peek_type((const char *)name, python.text_type) &&
           peek_word(object, at->code_lines, &lines) && peek_type((const char *)lines, python.bytes_type);
}

/* The layout is right for the version's headers, but builds differ (debug builds, patched ones):
 * before the first plain read, the whole chain of frames is read once with checks. */
static int check(const char *tstate) {
    const struct ht_layout *at = &python.layout;
    uintptr_t thread, frame;
    if (!peek_word(tstate, at->tstate_thread, &thread) || thread != (uintptr_t)pthread_self() ||
        !peek_word(tstate, at->tstate_frame, &frame))
        return BAD;
    if (at->cframe_frame != HT_NO_FIELD && !peek_word((const char *)frame, at->cframe_frame, &frame))
        return BAD;
    if (!frame)
        return UNCHECKED; /* no frame yet, so no evidence */
    for (int depth = 0; frame && depth < 10000; depth++)
        if (!check_frame((const char *)frame) || !peek_word((const char *)frame, at->frame_previous, &frame))
            return BAD;
    return GOOD;
}

static int usable(const char *tstate) {
    int state = __atomic_load_n(&checked, __ATOMIC_RELAXED);
    if (state != UNCHECKED)
        return state == GOOD && ht_word_at(tstate, python.layout.tstate_thread) == (uintptr_t)pthread_self();
    state = check(tstate);
    __atomic_store_n(&checked, state, __ATOMIC_RELAXED);
    if (state == BAD)
        __atomic_fetch_or(&flags, HT_HEAP_UNKNOWN_PYTHON, __ATOMIC_RELAXED);
    return state == GOOD;
}

/* Byte offset of the running instruction in co_code, for every version. 3.10 counts code units. */
static int32_t position(const char *frame, const char *code) {
    const struct ht_layout *at = &python.layout;
    switch (at->instruction) {
    case HT_LASTI_BYTES:
        return ht_int_at(frame, at->frame_instruction);
    case HT_LASTI_UNITS:
        return ht_int_at(frame, at->frame_instruction) * 2;
    default:
        return (int32_t)(ht_word_at(frame, at->frame_instruction) - (uintptr_t)(code + at->code_start));
    }
}

/* A frame that Python's own tracebacks would not show: still being set up. */
static int incomplete(const char *frame, const char *code, int32_t lasti) {
    const struct ht_layout *at = &python.layout;
    return at->code_traceable != HT_NO_FIELD && frame[at->frame_owner] != OWNED_BY_GENERATOR &&
           lasti < ht_int_at(code, at->code_traceable) * 2;
}

int ht_python_frames(struct ht_channel *channel, struct ht_frame *frames, int *truncated) {
    const struct ht_layout *at = &python.layout;
    *truncated = 0;
    if (!__atomic_load_n(&python.runtime, __ATOMIC_ACQUIRE) || checked == BAD || finalizing())
        return 0;
    const char *tstate = thread_state();
    if (!tstate || !usable(tstate))
        return 0;
    int n = 0;
    const char *frame = innermost(tstate);
    for (int depth = 0; sane(frame) && depth < 100000; depth++) {
        const char *code = plain(ht_word_at(frame, at->frame_code));
        if (sane(code) && ht_word_at(code, at->object_type) == python.code_type) {
            int32_t lasti = position(frame, code);
            if (!incomplete(frame, code, lasti)) {
                if (n == HT_MAX_FRAMES) {
                    *truncated = 1;
                    break;
                }
                uint32_t number = ht_code_number(channel, at, code);
                if (!number)
                    return -1;
                frames[n++] = (struct ht_frame){number, lasti, 0};
            }
        }
        frame = (const char *)ht_word_at(frame, at->frame_previous);
    }
    return n;
}
