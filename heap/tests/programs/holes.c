/* Every second of many blocks is freed, and malloc's own count is printed beside what the library will have told:
 * used, free, top, mapped. The engine asks by the word `malloc_seq`, whose place in the channel is given. */
#include <fcntl.h>
#include <glob.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void ask(const char *channels, uint64_t number) {
    char pattern[600];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*.ring", channels);
    if (glob(pattern, 0, NULL, &found) != 0)
        abort();
    int file = open(found.gl_pathv[0], O_RDWR);
    uint64_t *header = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    header[240 / 8] = number;
    munmap(header, 4096);
    globfree(&found);
}

/* At least one sampled call of malloc: from 4 MiB up all are. */
static void sampled(void) { free(malloc(8 << 20)); }

static void in_handler(int signal) {
    (void)signal;
    sampled();
}

int main(int count, char **words) {
    enum { BLOCKS = 4000, SIZE = 20000 };
    static char *blocks[BLOCKS];
    const char *channels = getenv("HIGHTIDE_CHANNELS");
    (void)count;
    for (int i = 0; i < BLOCKS; i++)
        memset(blocks[i] = malloc(SIZE), 1, SIZE);
    sampled();
    if (!strcmp(words[1], "handler")) {
        signal(SIGUSR1, in_handler);
        ask(channels, 1);
        raise(SIGUSR1); /* no count from here */
        return 0;
    }
    for (int i = 0; i < BLOCKS; i += 2)
        free(blocks[i]);
    sampled(); /* nobody has asked */
    ask(channels, 1);
    void *last = malloc(8 << 20);
    struct mallinfo2 info = mallinfo2();
    free(last);
    sampled(); /* once is enough */
    printf("%zu %zu %zu %zu\n", info.uordblks, info.fordblks, info.keepcost, info.hblkhd);
}
