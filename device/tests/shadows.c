/* shadows.c: more known pieces of device memory than are kept: the older half goes, at once and cheaply. */
#include <string.h>
#include <time.h>

#include "cuda.h"

#define PIECES 16384

static uint64_t cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static void write_piece(uint64_t at, int number) { ht_host_wrote(at + 64ull * (uint64_t)number, &number, sizeof number); }

static int known(uint64_t at, int number) {
    int found;
    return ht_kept(at + 64ull * (uint64_t)number, &found, sizeof found) && found == number;
}

int main(void) {
    uint64_t at, none;
    unsetenv("HIGHTIDE_DEVICE_TABLE");
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("HIGHTIDE_DEVICE_SPEC");
    OK(cudaMalloc(&at, GIB));
    uint64_t began = cpu_ns();
    for (int i = 0; i < PIECES; i++)
        write_piece(at, i);
    uint64_t filling = cpu_ns() - began;
    CHECK(known(at, 0) && known(at, PIECES - 1), "all are kept");
    CHECK(ht_slot()->shadow_bytes == 4 * PIECES, "%llu bytes told", (unsigned long long)ht_slot()->shadow_bytes);
    began = cpu_ns();
    write_piece(at, PIECES);
    uint64_t dropping = cpu_ns() - began;
    CHECK(dropping < filling, "dropping half took %llu ns, filling all %llu", (unsigned long long)dropping, (unsigned long long)filling);
    for (int i = 0; i <= PIECES; i++)
        CHECK(known(at, i) == (i >= PIECES / 2), "piece %d", i);
    CHECK(ht_slot()->shadow_bytes == 4 * (PIECES / 2 + 1), "%llu bytes told", (unsigned long long)ht_slot()->shadow_bytes);

    /* Too many bytes: of the large ones the highest stay, at most half as many as may be. */
    static char large[64 << 10] = {1};
    for (uint64_t i = 0; i < 1100; i++)
        ht_host_wrote(at + 512 * MIB + i * sizeof large, large, sizeof large);
    CHECK(ht_slot()->shadow_bytes <= 64 * MIB + 2 * sizeof large, "%llu bytes kept", (unsigned long long)ht_slot()->shadow_bytes);
    CHECK(ht_kept(at + 512 * MIB + 1099 * sizeof large, large, sizeof large) && large[0] == 1, "the last one");
    OK(cudaFree((void *)at));
    CHECK(ht_slot()->shadow_bytes == 0 && !ht_kept(at, &none, sizeof none), "all is forgotten with the block");
    printf("shadows: %d checks\n", checks);
    return 0;
}
