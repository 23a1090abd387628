/* Loads the heap library while threads allocate, then allocates in ways that can be told apart by size.
 *     late HEAP_LIBRARY EARLY_LIBRARY LATER_LIBRARY ROUNDS */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1ul << 20)
#define REQUIRE(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "late.c:%d: %s: %s\n", __LINE__, #what, dlerror()); \
            exit(1); \
        } \
    } while (0)

static int stop;

/* Blocks of all sizes, each with its own pattern, in and out of every function. */
static void *work(void *seed) {
    unsigned state = (unsigned)(size_t)seed;
    unsigned char *blocks[64] = {0};
    size_t sizes[64] = {0};
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        unsigned i = (state = state * 1664525 + 1013904223) >> 8 & 63;
        size_t size = 16 + (state >> 12) % 300000;
        if (blocks[i])
            REQUIRE(blocks[i][0] == (unsigned char)i && blocks[i][sizes[i] - 1] == (unsigned char)i);
        switch (state >> 4 & 3) {
        case 0:
            free(blocks[i]);
            blocks[i] = calloc(1, size);
            break;
        case 1:
            blocks[i] = realloc(blocks[i], size);
            break;
        case 2:
            free(blocks[i]);
            REQUIRE(posix_memalign((void **)&blocks[i], 64, size) == 0);
            break;
        default:
            free(blocks[i]);
            blocks[i] = malloc(size);
        }
        REQUIRE(blocks[i]);
        memset(blocks[i], (int)i, size);
        sizes[i] = size;
    }
    for (int i = 0; i < 64; i++)
        free(blocks[i]);
    return NULL;
}

/* What the maps say of the page that holds this program's own table for the loader, which RELRO covers. */
static char table_writable(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[600], result = '?';
    unsigned long from, to;
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx", &from, &to) == 2 && (size_t)_DYNAMIC >= from && (size_t)_DYNAMIC < to)
            result = strchr(line, ' ')[2];
    fclose(maps);
    return result;
}

int main(int argc, char **argv) {
    REQUIRE(argc == 5);
    pthread_t threads[4];
    void *(*volatile taken)(size_t) = malloc; /* its address may be a stub in this program */
    void *old = malloc(5 * MIB), *grown = taken(5 * MIB + 1), *mapped = mmap(NULL, 5 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *early = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    REQUIRE(early);
    void *(*make)(size_t) = (void *(*)(size_t))dlsym(early, "make");
    void (*drop)(void *) = (void (*)(void *))dlsym(early, "drop");
    void *(*make_by)(const char *, size_t) = (void *(*)(const char *, size_t))dlsym(early, "make_by");
    for (size_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    char before = table_writable();

    setenv("HIGHTIDE_HEAP_LATE", "1", 1);
    REQUIRE(dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL));
    unsetenv("HIGHTIDE_HEAP_LATE");
    REQUIRE(table_writable() == before);

    void *freed = malloc(6 * MIB);
    free(freed);
    make(7 * MIB);
    drop(make(7 * MIB + 1));
    void *later = dlopen(argv[3], RTLD_NOW);
    REQUIRE(later);
    void *(*make_later)(size_t) = (void *(*)(size_t))dlsym(later, "make");
    make_later(8 * MIB);
    REQUIRE(make_by("libinner.so", 9 * MIB));
    grown = realloc(grown, 10 * MIB);
    REQUIRE(taken(11 * MIB));
    free(old);
    munmap(mapped, 5 * MIB);
    REQUIRE(mmap(NULL, 12 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    for (int i = atoi(argv[4]); i > 0; i--) {
        void *again = dlopen(argv[2], RTLD_NOW);
        REQUIRE(again && dlsym(again, "make"));
        dlclose(later);
        REQUIRE((later = dlopen(argv[3], RTLD_NOW)));
        make_later = (void *(*)(size_t))dlsym(later, "make");
        free(make_later(4 * MIB + 4096));
    }
    pid_t child = fork();
    if (child == 0) {
        make(13 * MIB);
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
