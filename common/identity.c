#define _GNU_SOURCE
#include "identity.h"

#include "sys.h"

char *ht_put_text(char *to, char *end, const char *from) {
    while (*from && to < end)
        *to++ = *from++;
    return to;
}

char *ht_put_number(char *to, char *end, uint64_t value) {
    char digits[20];
    int n = 0;
    do
        digits[n++] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    while (n && to < end)
        *to++ = digits[--n];
    return to;
}

/* Of the process's first thread, which began when it did. Where processors are emulated, the emulator itself answers a
 * process that reads its own /proc/PID/stat, with another beginning than the kernel's. pid 0: this process. */
static long open_stat(uint32_t pid) {
    uint32_t number = pid ? pid : (uint32_t)sys_getpid();
    char path[48], *end = path + sizeof path - 1, *at = ht_put_number(ht_put_text(path, end, "/proc/"), end, number);
    at = ht_put_number(ht_put_text(at, end, "/task/"), end, number);
    *ht_put_text(at, end, "/stat") = 0;
    long fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    /* a /proc of another namespace knows this process under another number */
    return fd < 0 && !pid ? sys_open("/proc/self/stat", O_RDONLY | O_CLOEXEC, 0) : fd;
}

uint64_t ht_high_water(void) {
    static const char key[] = "\nVmHWM:";
    char text[2048];
    long fd = sys_open("/proc/self/status", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    long n = sys_read((int)fd, text, sizeof text - 1);
    sys_close((int)fd);
    text[n > 0 ? n : 0] = 0;
    uint64_t kilobytes = 0;
    for (const char *at = text; *at; at++) {
        unsigned same = 0;
        while (same < sizeof key - 1 && at[same] == key[same])
            same++;
        if (same < sizeof key - 1)
            continue;
        for (at += same; *at == ' ' || *at == '\t'; at++)
            ;
        for (; *at >= '0' && *at <= '9'; at++)
            kilobytes = kilobytes * 10 + (uint64_t)(*at - '0');
        break;
    }
    return kilobytes << 10;
}

uint64_t ht_started(uint32_t pid) {
    char text[1024];
    long fd = open_stat(pid);
    if (fd < 0)
        return pid && sys6(SYS_kill, pid, 0, 0, 0, 0, 0) == -ESRCH ? 0 : HT_START_UNKNOWN;
    long n = sys_read((int)fd, text, sizeof text - 1);
    sys_close((int)fd);
    if (n <= 0)
        return 0;
    text[n] = 0;
    char *at = text + n;
    while (at > text && *at != ')') /* the name in front may hold anything */
        at--;
    if (at[0] != ')' || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
        return 0;
    for (int field = 2; field < 22 && *at; at++)
        field += *at == ' ';
    uint64_t start = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        start = start * 10 + (uint64_t)(*at - '0');
    return start;
}
