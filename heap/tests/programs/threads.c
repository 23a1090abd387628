/* threads.c: threads start, allocate, hand blocks to each other and end, while signals that
 * allocate and free arrive. Ends only if nothing hangs; prints nothing. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define MIB (1ul << 20)
static void *slots[64];

static void *body(void *argument) {
    unsigned random = (unsigned)(size_t)argument;
    for (int i = 0; i < 3000; i++) {
        random = random * 1664525u + 1013904223u;
        void *p = malloc(random >> 28 ? 8192 : 5 * MIB);
        free(__atomic_exchange_n(&slots[random >> 20 & 63], p, __ATOMIC_ACQ_REL));
        if (random >> 24 & 1) {
            void *q = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            munmap(q, 4 * MIB);
        }
    }
    return NULL;
}

/* mmap and munmap are plain system calls, so a handler may use them; malloc it may not. */
static void handler(int number) {
    (void)number;
    void *p = mmap(NULL, 6 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p, 6 * MIB);
}

int main(void) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, 200}, {0, 200}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int round = 0; round < 8; round++) {
        pthread_t threads[8];
        for (size_t i = 0; i < 8; i++)
            pthread_create(&threads[i], NULL, body, (void *)(i + (size_t)round * 8 + 1));
        for (int i = 0; i < 8; i++)
            pthread_join(threads[i], NULL);
    }
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int i = 0; i < 64; i++)
        free(slots[i]);
    _exit(0);
}
