/* dlopen.c: the process's dlopen, as the library is preloaded: opened.c says what it does. A jump to the loader's own
 * leaves it its caller, whose RUNPATH it looks at. Not in the library for processes that preload nothing.
 */
#include "core.h"

/* Who opens a library with RTLD_DEEPBIND would have it find the real libraries before ours: the flag is left out. */
#if defined(__x86_64__)
__asm__(".text\n.globl dlopen\n.type dlopen, @function\n"
        "dlopen:\n"
        "  endbr64\n"
        "  pushq %rbp\n"
        "  movq %rsp, %rbp\n"
        "  pushq %rdi\n  pushq %rsi\n"
        "  movq 8(%rbp), %rdx\n"
        "  call ht_opened\n"
        "  cmpq $-1, %rax\n"
        "  je 1f\n"
        "  leave\n"
        "  ret\n"
        "1: popq %rsi\n  popq %rdi\n  popq %rbp\n"
        "  andl $-9, %esi\n"
        "  jmp *ht_next_dlopen(%rip)\n"
        ".size dlopen, .-dlopen\n");
#else
__asm__(".text\n.globl dlopen\n.type dlopen, %function\n"
        "dlopen:\n"
        "  hint 34\n" /* bti c */
        "  stp x29, x30, [sp, #-32]!\n"
        "  mov x29, sp\n"
        "  stp x0, x1, [sp, #16]\n"
        "  mov x2, x30\n"
        "  bl ht_opened\n"
        "  cmn x0, #1\n"
        "  b.eq 1f\n"
        "  ldp x29, x30, [sp], #32\n"
        "  ret\n"
        "1: ldp x0, x1, [sp, #16]\n  ldp x29, x30, [sp], #32\n"
        "  and w1, w1, #0xfffffff7\n"
        "  adrp x16, ht_next_dlopen\n  ldr x16, [x16, :lo12:ht_next_dlopen]\n"
        "  br x16\n"
        ".size dlopen, .-dlopen\n");
#endif
