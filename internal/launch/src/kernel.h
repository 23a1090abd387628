/* kernel.h: what a program needs that has no library: system calls, and its beginning. Linux on x86-64 and on arm64. */
#ifndef HT_KERNEL_H
#define HT_KERNEL_H
#include <asm/unistd.h>

/* START(function): the kernel begins there, with a stack as no caller would leave it. The function is handed where that
 * begins: how many words the command line has, then the words. */
#if defined(__x86_64__)
#define START(function) __asm__(".globl _start\n_start:\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall " #function "\n");

static inline long call5(long number, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	__asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
	return number;
}
#else
#define START(function) __asm__(".globl _start\n_start:\n\tmov x0, sp\n\tbl " #function "\n");

static inline long call5(long number, long a, long b, long c, long d, long e)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
	return x0;
}
#endif

static inline long call(long number, long a, long b, long c, long d) { return call5(number, a, b, c, d, 0); }
#endif
