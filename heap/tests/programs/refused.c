/* What the kernel refuses to unmap or to move is still there. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define MIB (1ul << 20)

static char *map(size_t bytes) {
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int refused(int failed, const char *what) {
    if (!failed || !errno) {
        fprintf(stderr, "%s was not refused\n", what);
        return 1;
    }
    errno = 0;
    return 0;
}

int main(void) {
    char *kept = map(20 * MIB), *holed = map(24 * MIB), *moved = map(28 * MIB);
    memset(kept, 1, 20 * MIB);
    int wrong = refused(munmap(kept, 1ul << 62) != 0, "unmapping half the world");
    wrong += refused(mmap(holed + 8 * MIB, 4 * MIB, PROT_READ, MAP_PRIVATE | MAP_FIXED, -1, 0) == MAP_FAILED, "mapping no file");
    wrong += refused(mremap(moved, 28 * MIB, 1ul << 50, 0) == MAP_FAILED, "growing beyond memory");
    return wrong + (munmap(map(32 * MIB), 32 * MIB) != 0);
}
