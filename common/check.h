/* check.h: the least a C test needs. */
#ifndef HT_CHECK_H
#define HT_CHECK_H
#include <stdio.h>
#include <stdlib.h>

static int checks;
#define CHECK(condition, ...) \
    do { \
        checks++; \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
            fprintf(stderr, __VA_ARGS__); \
            fputc('\n', stderr); \
            exit(1); \
        } \
    } while (0)
#endif
