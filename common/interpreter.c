#define _GNU_SOURCE
#include "interpreter.h"

#include <pthread.h>

#include "../include/hightide_channel.h"
#include "loader.h"
#include "sys.h"

static const struct ht_layout layouts[] = {
#include "layouts.h"
};

#define MAX_KEY 1024     /* PTHREAD_KEYS_MAX */
#define KEY_SEARCH 1024  /* bytes around where the headers put the key */
#define KEY_TRIES 256    /* searches; a thread without Python cannot find it */

struct ht_interpreter ht_interpreter; /* constant once .runtime is set */
static uint64_t flags = HT_HEAP_NO_PYTHON;
static uint32_t key_tries;
enum { UNCHECKED, GOOD, BAD };
static int checked; /* whether the layout was seen to fit */

/* "3.11.7 (main, ...": Py_GetVersion prints into a static buffer of its own, it takes no lock. */
static uint16_t version(const char *text) {
    unsigned minor = 0;
    if (!text || text[0] != '3' || text[1] != '.')
        return 0;
    for (text += 2; *text >= '0' && *text <= '9' && minor < 100; text++)
        minor = minor * 10 + (unsigned)(*text - '0');
    return (uint16_t)(0x300 | minor);
}

static const struct ht_layout *layout_of(uint16_t minor) {
    for (unsigned i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].python == minor)
            return &layouts[i];
    return NULL;
}

/* 3.13 and later say where their fields are; that is nearer the truth than our table, whose rows
 * are of one patch release each. 0: what they say is not for us. */
static int refine(struct ht_layout *layout, const char *runtime) {
    uint64_t cookie, hex, free_threaded;
    memcpy(&cookie, runtime, 8);
    memcpy(&hex, runtime + 8, 8);
    memcpy(&free_threaded, runtime + 16, 8);
    if (memcmp(&cookie, "xdebugpy", 8) != 0 || hex >> 16 != layout->python)
        return 0;
    if (free_threaded) { /* bytecode is per thread there, and other threads may replace it */
        flags = HT_HEAP_FREE_THREADED;
        return 0;
    }
#define TAKE(name) layout->name = (uint32_t)ht_word_at(runtime, layout->debug.name);
    HT_DEBUG_FIELDS(TAKE)
#undef TAKE
    return 1;
}

void ht_interpreter_find(void) {
    struct ht_interpreter *py = &ht_interpreter;
    if (py->runtime || flags != HT_HEAP_NO_PYTHON)
        return;
    const char *runtime = ht_symbol("_PyRuntime");
    const char *(*get_version)(void) = (const char *(*)(void))(uintptr_t)ht_symbol("Py_GetVersion");
    if (!get_version)
        return;
    flags = HT_HEAP_UNKNOWN_PYTHON;
    const struct ht_layout *layout = runtime ? layout_of(version(get_version())) : NULL;
    py->code_type = (uintptr_t)ht_symbol("PyCode_Type");
    py->text_type = (uintptr_t)ht_symbol("PyUnicode_Type");
    py->bytes_type = (uintptr_t)ht_symbol("PyBytes_Type");
    if (!layout || !py->code_type || !py->text_type || !py->bytes_type)
        return;
    py->layout = *layout;
    if (layout->debug.runtime_size && !refine(&py->layout, runtime))
        return;
    flags = 0;
    __atomic_store_n(&py->runtime, runtime, __ATOMIC_RELEASE);
}

uint64_t ht_interpreter_flags(void) { return __atomic_load_n(&flags, __ATOMIC_RELAXED); }

static int peek_word(const char *base, uint32_t offset, uintptr_t *value) {
    return ht_sane(base) && sys_peek(value, base + offset, sizeof *value);
}

static int peek_type(const char *object, uintptr_t type) {
    uintptr_t found;
    return peek_word(object, ht_interpreter.layout.object_type, &found) && found == type;
}

static int is_ours(const char *tstate) {
    uintptr_t thread;
    return peek_word(tstate, ht_interpreter.layout.tstate_thread, &thread) && thread == (uintptr_t)pthread_self();
}

/* The value of the Py_tss_t { int is_initialized; pthread_key_t key; } at that place. */
static const char *value_of_key(uint32_t offset) {
    const char *key = ht_interpreter.runtime + offset;
    if (ht_int_at(key, 0) != 1 || (uint32_t)ht_int_at(key, 4) >= MAX_KEY)
        return NULL;
    return ht_getspecific((pthread_key_t)ht_int_at(key, 4));
}

/* The key's place is in no _Py_DebugOffsets and may move with a patch release, but only its value
 * is this thread's state. Look for it near where the headers have it. */
static const char *search_key(void) {
    struct ht_layout *at = &ht_interpreter.layout;
    uint32_t from = at->runtime_key > KEY_SEARCH ? at->runtime_key - KEY_SEARCH : 0;
    for (uint32_t offset = from; offset < at->runtime_key + KEY_SEARCH && offset + 8 <= at->runtime_size; offset += 4) {
        const char *tstate = value_of_key(offset);
        if (tstate && is_ours(tstate)) {
            __atomic_store_n(&at->runtime_key, offset, __ATOMIC_RELAXED);
            return tstate;
        }
    }
    return NULL;
}

/* Does this frame hold what the layout says, down to the strings? Every read may fail. */
static int check_frame(const char *frame) {
    const struct ht_layout *at = &ht_interpreter.layout;
    uintptr_t code, filename, name, lines;
    if (!peek_word(frame, at->frame_code, &code))
        return 0;
    const char *object = (const char *)(code & ~(uintptr_t)at->code_tags);
    if (!peek_type(object, ht_interpreter.code_type))
        return at->owner_shim != 255 && ht_sane(object); /* a shim's: None, or a stub */
    return peek_word(object, at->code_filename, &filename) && peek_word(object, at->code_name, &name) &&
           peek_word(object, at->code_lines, &lines) &&
           peek_type((const char *)filename, ht_interpreter.text_type) &&
           peek_type((const char *)name, ht_interpreter.text_type) &&
           peek_type((const char *)lines, ht_interpreter.bytes_type);
}

/* The layout is right for the version, but builds differ (debug builds, patched ones): before the
 * first plain read, the whole chain of frames is read once with checks. */
static int check(const char *tstate) {
    const struct ht_layout *at = &ht_interpreter.layout;
    uintptr_t frame;
    if (!is_ours(tstate) || !peek_word(tstate, at->tstate_frame, &frame))
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

static int passes(const char *tstate) {
    int state = check(tstate);
    __atomic_store_n(&checked, state, __ATOMIC_RELAXED);
    if (state == BAD)
        __atomic_store_n(&flags, HT_HEAP_UNKNOWN_PYTHON, __ATOMIC_RELAXED);
    return state == GOOD;
}

const char *ht_thread_state(void) {
    const struct ht_layout *at = &ht_interpreter.layout;
    int state = __atomic_load_n(&checked, __ATOMIC_RELAXED);
    if (state == BAD || !__atomic_load_n(&ht_interpreter.runtime, __ATOMIC_ACQUIRE))
        return NULL;
    /* While the interpreter is torn down it frees the states of threads that still run. */
    if (ht_word_at(ht_interpreter.runtime, at->runtime_finalizing))
        return NULL;
    const char *tstate = value_of_key(__atomic_load_n(&at->runtime_key, __ATOMIC_RELAXED));
    if (state == GOOD)
        return tstate && ht_word_at(tstate, at->tstate_thread) == (uintptr_t)pthread_self() ? tstate : NULL;
    if ((!tstate || !is_ours(tstate)) && __atomic_fetch_add(&key_tries, 1, __ATOMIC_RELAXED) < KEY_TRIES)
        tstate = search_key();
    return tstate && passes(tstate) ? tstate : NULL;
}

const char *ht_innermost(const char *tstate) {
    const struct ht_layout *at = &ht_interpreter.layout;
    const char *frame = (const char *)ht_word_at(tstate, at->tstate_frame);
    if (at->cframe_frame != HT_NO_FIELD && frame)
        frame = (const char *)ht_word_at(frame, at->cframe_frame);
    return frame;
}
