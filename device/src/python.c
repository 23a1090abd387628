/* python.c: the line of the user's script that the calling thread is at, read from the interpreter's
 * frames as plain memory (common/interpreter.c): no Python API, no reference, no lock.
 */
#include <string.h>

#include "../../common/interpreter.h"
#include "raw.h"

#define DEEPEST 2000
#define LONGEST 65536 /* bytes of a line table */

/* ---- text: a str's characters, those above one byte as '?'; the end of it where it is too long */
static void text(const struct ht_layout *at, const char *object, char *into, size_t room) {
    uint32_t state = (uint32_t)ht_int_at(object, at->text_state);
    size_t length = ht_word_at(object, at->text_length), width = state >> 2 & 7;
    const char *data = object + (state & 64 ? at->text_ascii : at->text_compact);
    if (!(state & 32) || (width != 1 && width != 2 && width != 4))
        return;
    size_t skip = length < room ? 0 : length - room + 1;
    for (size_t i = skip; i < length; i++) {
        uint32_t c = 0;
        memcpy(&c, data + i * width, width);
        *into++ = (char)(c >= 32 && c < 127 ? c : '?');
    }
    *into = 0;
}

/* ---- line tables, by version; `target` is the byte offset of the running instruction */

/* 3.8, 3.9: pairs (bytes of code, signed lines); 3.10: the same pairs, but the lines come first. */
static int line_of_pairs(const uint8_t *table, size_t size, int line, int target, int new_kind) {
    int offset = 0, found = line;
    for (size_t i = 0; i + 1 < size; i += 2) {
        int8_t lines = (int8_t)table[i + 1];
        if (new_kind) {
            if (lines != -128)
                line += lines;
            if (target < offset + table[i])
                return line;
            found = line;
        } else if ((found = line), offset + table[i] > target) {
            return line;
        } else {
            line += lines;
            found = line;
        }
        offset += table[i];
    }
    return found;
}

static const uint8_t *varint(const uint8_t *at, const uint8_t *end, unsigned *value) {
    unsigned shift = 0;
    *value = 0;
    while (at < end) {
        *value |= (unsigned)(*at & 63) << shift;
        shift += 6;
        if (!(*at++ & 64) || shift > 30)
            break;
    }
    return at;
}

/* 3.11 and later: entries of (1 kkkk nnn): kind k, n + 1 units of two bytes of code. */
static int line_of_locations(const uint8_t *at, const uint8_t *end, int line, int target) {
    int offset = 0;
    while (at < end) {
        int kind = *at >> 3 & 15, length = ((*at & 7) + 1) * 2;
        unsigned delta = 0;
        at++;
        if (kind == 13 || kind == 14) {
            at = varint(at, end, &delta);
            line += delta & 1 ? -(int)(delta >> 1) : (int)(delta >> 1);
        } else if (kind >= 10 && kind <= 12) {
            line += kind - 10;
        }
        if (target < offset + length)
            return line;
        offset += length;
        while (at < end && !(*at & 128))
            at++;
    }
    return line;
}

static int line_of(const struct ht_layout *at, const char *code, int lasti) {
    const char *lines = (const char *)ht_word_at(code, at->code_lines);
    const uint8_t *table = (const uint8_t *)lines + at->bytes_data;
    size_t size = ht_word_at(lines, at->bytes_size);
    int first = ht_int_at(code, at->code_firstline);
    if (size > LONGEST)
        return first;
    if (at->python >= 0x030b)
        return line_of_locations(table, table + size, first, lasti);
    return line_of_pairs(table, size, first, lasti, at->python == 0x030a);
}

/* Of what is installed, or generated, the user's script is not. */
static int foreign(const char *file) {
    static const char *const marks[] = {"/site-packages/", "/dist-packages/", "/lib/python3", "hightide_agent", "<"};
    for (unsigned i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strstr(file, marks[i]))
            return 1;
    return 0;
}

static void read_frame(const struct ht_layout *at, const char *frame, const char *code, struct ht_line *line) {
    text(at, (const char *)ht_word_at(code, at->code_filename), line->file, sizeof line->file);
    text(at, (const char *)ht_word_at(code, at->code_name), line->function, sizeof line->function);
    line->line = line_of(at, code, ht_position(at, frame, code));
}

/* The innermost frame of the user's own files; of a script that is installed itself, the innermost of all. */
void ht_python_line(struct ht_line *line) {
    const struct ht_layout *at = &ht_interpreter.layout;
    memset(line, 0, sizeof *line);
    ht_interpreter_find();
    const char *tstate = ht_thread_state();
    const char *frame = tstate ? ht_innermost(tstate) : NULL;
    struct ht_line one;
    for (int depth = 0; ht_sane(frame) && depth < DEEPEST; depth++, frame = (const char *)ht_word_at(frame, at->frame_previous)) {
        const char *code = ht_code_of(at, frame);
        if (!ht_sane(code) || ht_word_at(code, at->object_type) != ht_interpreter.code_type)
            continue;
        memset(&one, 0, sizeof one);
        read_frame(at, frame, code, &one);
        if (!line->line || !foreign(one.file))
            *line = one;
        if (!foreign(one.file))
            return;
    }
}
