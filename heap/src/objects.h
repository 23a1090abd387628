/* objects.h: the program and its libraries, as the loader has them in memory. */
#ifndef HT_OBJECTS_H
#define HT_OBJECTS_H
#include <link.h>
#include <stddef.h>
#include <stdint.h>

struct ht_object {
    uintptr_t base;                  /* what addresses in the file count from */
    uintptr_t from, to;              /* its segments, the first to the last */
    uintptr_t fixed_from, fixed_to;  /* pages that the loader makes read-only at the end (RELRO); empty: none */
    const ElfW(Sym) *symbols;
    const char *names;
    const uint32_t *hash;            /* DT_GNU_HASH; NULL: none */
    const ElfW(Rela) *calls, *others; /* relocations: DT_JMPREL, DT_RELA */
    size_t call_bytes, other_bytes;
};

/* 0: it has no symbols. */
int ht_object_read(struct ht_object *object, const struct dl_phdr_info *info);

/* The address of a function that the object defines; NULL: it defines none of that name, or chooses it at run time. */
void *ht_object_defines(const struct ht_object *object, const char *name);

/* The first definition of a function, in the order in which the loader looks them up, without the object that holds
 * `except`; NULL: none. Unlike dlsym's answer it is never the stub through which a program calls another's function. */
void *ht_objects_define(const char *name, const void *except);
#endif
