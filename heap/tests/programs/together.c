/* together.c: eight threads allocate for the first time, all at once. */
#include <pthread.h>
#include <stdlib.h>

static pthread_barrier_t barrier;

static void *work(void *unused) {
    (void)unused;
    pthread_barrier_wait(&barrier);
    return malloc(4 << 20);
}

int main(void) {
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
