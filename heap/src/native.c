#include "native.h"

#include "../../common/sys.h"

#define DEEPEST (1u << 20) /* bytes of stack to look at */

int ht_native_frames(struct ht_frame *frames, const void *hook) {
    const uintptr_t *own = hook;
    uintptr_t at = own[0], below = (uintptr_t)hook, step[2];
    int n = 0;
    frames[n++] = (struct ht_frame){own[1], 0, 1};
    while (n < HT_NATIVE_FRAMES && at > below && at - (uintptr_t)hook < DEEPEST && at % sizeof at == 0 &&
           sys_peek(step, (const void *)at, sizeof step) && step[1] >= 4096 && step[1] < (1ull << 47)) {
        frames[n++] = (struct ht_frame){step[1], 0, 1};
        below = at; /* outer frames lie higher */
        at = step[0];
    }
    return n;
}
