/* say.c: lines for people who ask for them. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core.h"

void ht_say(const char *format, ...) {
    static int known = -1;
    int loud = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (loud < 0) {
        const char *text = getenv("HIGHTIDE_DEVICE_VERBOSE");
        loud = text && *text && *text != '0';
        __atomic_store_n(&known, loud, __ATOMIC_RELAXED);
    }
    if (!loud)
        return;
    va_list more;
    char line[400];
    va_start(more, format);
    vsnprintf(line, sizeof line, format, more);
    va_end(more);
    fprintf(stderr, "hightide device: %s\n", line);
}
