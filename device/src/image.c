/* image.c: which versions of its kernels a library brings. A kernel runs as the best one for the device,
 * and says so when it is asked: CUB picks its tuning by that, and refuses what it was not compiled for.
 *
 *     __cudaRegisterFatBinary ─▶ the first images of each library are looked at ─▶ versions, by library
 */
#define _GNU_SOURCE
#include <link.h>
#include <string.h>

#include "runtime.h"

#define LIBRARIES 64
#define LOOKED_AT 4 /* images of a library; all are compiled for the same versions */
#define VERSIONS 32

struct library { uintptr_t low, high; int looked, count; uint16_t version[VERSIONS]; uint8_t is_text[VERSIONS]; };
static struct library libraries[LIBRARIES];
static int known;
pthread_mutex_t ht_images_lock = PTHREAD_MUTEX_INITIALIZER;

static int see(struct dl_phdr_info *info, size_t size, void *data) {
    struct library *wanted = data; /* low: the address asked about */
    uintptr_t low = UINTPTR_MAX, high = 0;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, to = from + info->dlpi_phdr[i].p_memsz;
            low = from < low ? from : low;
            high = to > high ? to : high;
        }
    if (wanted->low < low || wanted->low >= high)
        return 0;
    *wanted = (struct library){.low = low, .high = high};
    return 1;
}

static struct library *find(const void *address) { /* under the lock */
    static int last;
    uintptr_t at = (uintptr_t)address;
    if (last < known && at >= libraries[last].low && at < libraries[last].high)
        return &libraries[last];
    for (int i = 0; i < known; i++)
        if (at >= libraries[i].low && at < libraries[i].high)
            return &libraries[last = i];
    return NULL;
}

/* Returns with the lock held. The loader is asked without it. */
static struct library *find_or_add(const void *address) {
    pthread_mutex_lock(&ht_images_lock);
    struct library *library = find(address), fresh = {.low = (uintptr_t)address};
    if (library)
        return library;
    pthread_mutex_unlock(&ht_images_lock);
    int found = dl_iterate_phdr(see, &fresh);
    pthread_mutex_lock(&ht_images_lock);
    library = find(address); /* another thread may have been here */
    if (!library && found && known < LIBRARIES)
        *(library = &libraries[known++]) = fresh;
    return library;
}

struct wrapper { uint32_t magic, version; const char *image; };
struct header { uint32_t magic; uint16_t version, bytes; uint64_t size; };
struct entry { uint16_t kind, flags; uint32_t bytes; uint64_t size; uint32_t compressed, options; uint16_t minor, major; uint32_t version; };
enum { WRAPPER_MAGIC = 0x466243b1, IMAGE_TEXT = 1, IMAGE_CODE = 2 };
#define HEADER_MAGIC 0xba55ed50u

static void note(struct library *library, uint32_t version, int is_text) {
    for (int i = 0; i < library->count; i++)
        if (library->version[i] == version && library->is_text[i] == is_text)
            return;
    if (library->count == VERSIONS)
        return;
    library->version[library->count] = (uint16_t)version;
    library->is_text[library->count++] = (uint8_t)is_text;
}

void ht_image_seen(const void *address) {
    const struct wrapper *wrapper = address;
    if (!wrapper || wrapper->magic != WRAPPER_MAGIC || !wrapper->image)
        return;
    struct library *library = find_or_add(wrapper);
    const struct header *header = (const void *)wrapper->image;
    if (library && library->looked++ < LOOKED_AT && header->magic == HEADER_MAGIC) {
        const char *at = wrapper->image + header->bytes, *end = at + header->size;
        while (at + sizeof(struct entry) <= end) {
            const struct entry *entry = (const void *)at;
            if (entry->bytes < sizeof *entry || entry->size > (uint64_t)(end - at))
                break;
            if (entry->kind == IMAGE_TEXT || entry->kind == IMAGE_CODE)
                note(library, entry->version, entry->kind == IMAGE_TEXT);
            at += entry->bytes + entry->size;
        }
    }
    pthread_mutex_unlock(&ht_images_lock);
}

/* Code of the same major version and no newer minor one runs as it is; else the newest text that is no
 * newer is compiled. A library that brings neither is taken to be made for the device. */
int ht_image_version(const void *f, int major, int minor) {
    int wanted = major * 10 + minor, code = 0, text = 0;
    pthread_mutex_lock(&ht_images_lock);
    const struct library *library = find(f);
    for (int i = 0; library && i < library->count; i++) {
        int version = library->version[i];
        if (version > wanted)
            continue;
        if (library->is_text[i])
            text = version > text ? version : text;
        else if (version / 10 == major)
            code = version > code ? version : code;
    }
    pthread_mutex_unlock(&ht_images_lock);
    return code ? code : text ? text : wanted;
}
