/* dlopen.c: the process's dlopen, as the library is preloaded: opened.c says what it does. A jump to the loader's own
 * leaves it its caller, whose RUNPATH it looks at. Not in the library for processes that preload nothing.
 */
#include "core.h"

/* Who opens a library with RTLD_DEEPBIND would have it find the real libraries before ours: the flag is left out. */
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
