/* sys.h: the system calls that both libraries make, without libc in between.
 *
 * libc's wrappers write errno, some are newer than GLIBC_2.17 (fstat, gettid), and mmap is one of
 * the functions we stand in for. Every call here returns what the kernel returned: a value >= 0,
 * or -errno. Linux on x86-64 and on arm64, which has only the calls that take a folder (openat).
 */
#ifndef HT_SYS_H
#define HT_SYS_H
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#if defined(__x86_64__)
static inline long sys6(long number, long a, long b, long c, long d, long e, long f) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static inline long sys6(long number, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#endif

/* Lets another thread of the core go first, in a loop that waits. */
static inline void sys_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("yield");
#endif
}

static inline long sys_getpid(void) { return sys6(SYS_getpid, 0, 0, 0, 0, 0, 0); }
static inline long sys_gettid(void) { return sys6(SYS_gettid, 0, 0, 0, 0, 0, 0); }
static inline long sys_close(int fd) { return sys6(SYS_close, fd, 0, 0, 0, 0, 0); }
static inline long sys_unlink(const char *path) { return sys6(SYS_unlinkat, AT_FDCWD, (long)path, 0, 0, 0, 0); }
static inline long sys_exists(const char *path) { return sys6(SYS_faccessat, AT_FDCWD, (long)path, 0, 0, 0, 0) == 0; }
static inline long sys_open(const char *path, int flags, int mode) {
    return sys6(SYS_openat, AT_FDCWD, (long)path, flags, mode, 0, 0);
}
static inline long sys_read(int fd, void *into, size_t bytes) {
    return sys6(SYS_read, fd, (long)into, (long)bytes, 0, 0, 0);
}
static inline long sys_fchmod(int fd, int mode) { return sys6(SYS_fchmod, fd, mode, 0, 0, 0, 0); }
static inline long sys_rename_new(const char *from, const char *to) {
    long result = sys6(SYS_renameat2, AT_FDCWD, (long)from, AT_FDCWD, (long)to, 1 /* RENAME_NOREPLACE */, 0);
    if (result == -ENOSYS || result == -EINVAL)
        result = sys6(SYS_renameat, AT_FDCWD, (long)from, AT_FDCWD, (long)to, 0, 0);
    return result;
}
static inline long sys_mmap(void *at, size_t bytes, int protection, int flags, int fd, long offset) {
    return sys6(SYS_mmap, (long)at, (long)bytes, protection, flags, fd, offset);
}
static inline long sys_munmap(void *at, size_t bytes) { return sys6(SYS_munmap, (long)at, (long)bytes, 0, 0, 0, 0); }
static inline long sys_madvise(void *at, size_t bytes, int advice) {
    return sys6(SYS_madvise, (long)at, (long)bytes, advice, 0, 0, 0);
}
static inline long sys_fstatfs(int fd, struct statfs *into) { return sys6(SYS_fstatfs, fd, (long)into, 0, 0, 0, 0); }
static inline long sys_truncate(int fd, size_t bytes) { return sys6(SYS_ftruncate, fd, (long)bytes, 0, 0, 0, 0); }
static inline int sys_failed(long result) { return result < 0 && result >= -4095; }

/* Gives every byte of a file its place, or says that there is none: a hole in shared memory would
 * be a SIGBUS in the observed program later. Some file systems have no fallocate; zeros then. */
static inline long sys_allocate(int fd, size_t bytes) {
    long result;
    do
        result = sys6(SYS_fallocate, fd, 0, 0, (long)bytes, 0, 0);
    while (result == -EINTR);
    if (result != -EOPNOTSUPP && result != -ENOSYS)
        return result;
    static const char zeros[4096];
    for (size_t at = 0; at < bytes; at += sizeof zeros) {
        result = sys6(SYS_pwrite64, fd, (long)zeros, sizeof zeros, (long)at, 0, 0);
        if (result != (long)sizeof zeros)
            return result < 0 ? result : -ENOSPC;
    }
    return 0;
}

/* Gives every page of a writable shared mapping its place in the file, or says with -EFAULT that there is none,
 * where a first access would be a SIGBUS. The kernel adds 0 to a word of each; it needs no descriptor. */
static inline long sys_populate(void *at, size_t bytes) {
    const long wake_op = 5, add_zero = 1 << 28;
    uintptr_t page = (uintptr_t)at & ~(uintptr_t)4095;
    for (; page < (uintptr_t)at + bytes; page += 4096) {
        long result = sys6(SYS_futex, (long)page, wake_op, 0, 0, (long)page, add_zero);
        if (result < 0)
            return result;
    }
    return 0;
}

/* Whether 8 bytes can be read: the kernel fetches the signal set before it finds that `how` is
 * nonsense. Needs no descriptor, and works where process_vm_readv is forbidden (containers). */
static inline int sys_readable(const void *p) {
    return sys6(SYS_rt_sigprocmask, ~0l, (long)p, 0, 8, 0, 0) != -EFAULT;
}

/* Copies own memory that may not be mapped; 1 if all of it was there. About 0.1 us a word, so it
 * serves for checking a layout once and for walking stacks we know little about. */
static inline int sys_peek(void *into, const void *from, size_t bytes) {
    for (size_t at = 0; at + 8 <= bytes; at += 8)
        if (!sys_readable((const char *)from + at))
            return 0;
    __builtin_memcpy(into, from, bytes);
    return 1;
}

/* The largest file this process may write; beyond it the kernel sends SIGXFSZ, which kills. */
static inline uint64_t sys_file_limit(void) {
    uint64_t limit[2] = {0, 0};
    if (sys6(SYS_prlimit64, 0, 1 /* RLIMIT_FSIZE */, 0, (long)limit, 0, 0) != 0)
        return UINT64_MAX;
    return limit[0];
}
#endif
