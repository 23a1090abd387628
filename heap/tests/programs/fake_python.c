/* fake_python.c: preloaded beside the library, pretends to be an interpreter that it cannot read
 * (build with -shared -fPIC -DVERSION=... [-DFREE_THREADED] [-DGARBAGE]). Nothing may crash. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>

char _PyRuntime[1 << 19];
char PyCode_Type[512], PyUnicode_Type[512], PyBytes_Type[512];
#ifdef GARBAGE
static char state[4096];
#endif

const char *Py_GetVersion(void) { return VERSION " (made up)"; }

__attribute__((constructor)) static void start(void) {
    memcpy(_PyRuntime, "xdebugpy", 8);
    uint64_t hex = 0x030d00f0;
    memcpy(_PyRuntime + 8, &hex, 8);
#ifdef FREE_THREADED
    _PyRuntime[16] = 1;
#endif
#ifdef GARBAGE
    /* A thread key whose value has this thread's id in every word: the frame pointer is a lie. */
    pthread_key_t key;
    pthread_key_create(&key, 0);
    uint64_t self = (uint64_t)pthread_self();
    for (unsigned i = 0; i < sizeof state; i += 8)
        memcpy(state + i, &self, 8);
    pthread_setspecific(key, state);
    uint32_t tss[2] = {1, key};
    for (unsigned i = 32; i + 8 <= 4096; i += 8) /* found wherever it is looked for, but not "finalizing" */
        memcpy(_PyRuntime + i, tss, 8);
    memset(_PyRuntime + 24, 0, 8);
#endif
}
