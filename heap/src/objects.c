#define _GNU_SOURCE
#include "objects.h"

#include <string.h>

#define PAGE 4096ul

/* Of most objects the loader has put addresses into the table itself; of some, offsets are left. */
static const void *place(const struct ht_object *object, uintptr_t value) {
    return (const void *)(value >= object->base ? value : object->base + value);
}

static void read_dynamic(struct ht_object *object, const ElfW(Dyn) *entry) {
    for (; entry->d_tag != DT_NULL; entry++) {
        const void *at = place(object, entry->d_un.d_ptr);
        switch (entry->d_tag) {
        case DT_SYMTAB: object->symbols = at; break;
        case DT_STRTAB: object->names = at; break;
        case DT_GNU_HASH: object->hash = at; break;
        case DT_JMPREL: object->calls = at; break;
        case DT_PLTRELSZ: object->call_bytes = entry->d_un.d_val; break;
        case DT_RELA: object->others = at; break;
        case DT_RELASZ: object->other_bytes = entry->d_un.d_val; break;
        }
    }
}

int ht_object_read(struct ht_object *object, const struct dl_phdr_info *info) {
    const ElfW(Dyn) *dynamic = NULL;
    *object = (struct ht_object){.base = info->dlpi_addr, .from = UINTPTR_MAX};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr, end = start + segment->p_memsz;
        if (segment->p_type == PT_DYNAMIC) {
            dynamic = (const ElfW(Dyn) *)start;
        } else if (segment->p_type == PT_GNU_RELRO) {
            object->fixed_from = start & ~(PAGE - 1);
            object->fixed_to = end & ~(PAGE - 1);
        } else if (segment->p_type == PT_LOAD) {
            object->from = start < object->from ? start : object->from;
            object->to = end > object->to ? end : object->to;
        }
    }
    if (dynamic)
        read_dynamic(object, dynamic);
    return object->symbols && object->names;
}

static uint32_t hash_of(const char *name) {
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static void *address_of(const struct ht_object *object, const ElfW(Sym) *symbol) {
    if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC)
        return NULL;
    return (void *)(object->base + symbol->st_value);
}

void *ht_object_defines(const struct ht_object *object, const char *name) {
    if (!object->hash || !object->hash[0])
        return NULL;
    uint32_t buckets = object->hash[0], first = object->hash[1], words = object->hash[2], hash = hash_of(name);
    const uint32_t *bucket = object->hash + 4 + words * (sizeof(ElfW(Addr)) / 4), *chain = bucket + buckets;
    uint32_t i = bucket[hash % buckets];
    if (i < first)
        return NULL;
    for (;; i++) {
        if ((chain[i - first] | 1) == (hash | 1) && !strcmp(object->names + object->symbols[i].st_name, name))
            return address_of(object, &object->symbols[i]);
        if (chain[i - first] & 1)
            return NULL;
    }
}

struct wanted {
    const char *name;
    uintptr_t except;
    void *found;
};

static int define(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct wanted *wanted = data;
    struct ht_object object;
    if (!ht_object_read(&object, info) || wanted->except - object.from < object.to - object.from)
        return 0;
    wanted->found = ht_object_defines(&object, wanted->name);
    return wanted->found != NULL;
}

void *ht_objects_define(const char *name, const void *except) {
    struct wanted wanted = {name, (uintptr_t)except, NULL};
    dl_iterate_phdr(define, &wanted);
    return wanted.found;
}
