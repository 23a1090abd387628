/* forward.c: the first call of an entry point that the real library answers (forward.h). */
#include "forward.h"

void *ht_forward_find(struct ht_forward *forward) {
    void *real = ht_real_symbol(forward->library, forward->name);
    if (!real)
        return forward->absent; /* asked again next time: the library may come later */
    __atomic_store_n(&forward->at, real, __ATOMIC_RELEASE);
    return real;
}

/* r11, on arm64 x16, is the ht_forward; all registers that carry arguments are kept over the search. */
#if defined(__x86_64__)
__asm__(".text\n.hidden ht_forward_first\n.globl ht_forward_first\n.type ht_forward_first, @function\n"
        "ht_forward_first:\n"
        "  pushq %rbp\n"
        "  movq %rsp, %rbp\n"
        "  pushq %rax\n  pushq %rdi\n  pushq %rsi\n  pushq %rdx\n  pushq %rcx\n  pushq %r8\n  pushq %r9\n  pushq %r10\n"
        "  subq $128, %rsp\n"
        "  movups %xmm0, 0(%rsp)\n  movups %xmm1, 16(%rsp)\n  movups %xmm2, 32(%rsp)\n  movups %xmm3, 48(%rsp)\n"
        "  movups %xmm4, 64(%rsp)\n  movups %xmm5, 80(%rsp)\n  movups %xmm6, 96(%rsp)\n  movups %xmm7, 112(%rsp)\n"
        "  movq %r11, %rdi\n"
        "  call ht_forward_find\n"
        "  movq %rax, %r11\n"
        "  movups 0(%rsp), %xmm0\n  movups 16(%rsp), %xmm1\n  movups 32(%rsp), %xmm2\n  movups 48(%rsp), %xmm3\n"
        "  movups 64(%rsp), %xmm4\n  movups 80(%rsp), %xmm5\n  movups 96(%rsp), %xmm6\n  movups 112(%rsp), %xmm7\n"
        "  addq $128, %rsp\n"
        "  popq %r10\n  popq %r9\n  popq %r8\n  popq %rcx\n  popq %rdx\n  popq %rsi\n  popq %rdi\n  popq %rax\n"
        "  popq %rbp\n"
        "  jmp *%r11\n"
        ".size ht_forward_first, .-ht_forward_first\n");
#else
__asm__(".text\n.hidden ht_forward_first\n.globl ht_forward_first\n.type ht_forward_first, %function\n"
        "ht_forward_first:\n"
        "  stp x29, x30, [sp, #-224]!\n"
        "  mov x29, sp\n"
        "  stp x0, x1, [sp, #16]\n  stp x2, x3, [sp, #32]\n  stp x4, x5, [sp, #48]\n  stp x6, x7, [sp, #64]\n"
        "  str x8, [sp, #80]\n"
        "  stp q0, q1, [sp, #96]\n  stp q2, q3, [sp, #128]\n  stp q4, q5, [sp, #160]\n  stp q6, q7, [sp, #192]\n"
        "  mov x0, x16\n"
        "  bl ht_forward_find\n"
        "  mov x16, x0\n"
        "  ldp q0, q1, [sp, #96]\n  ldp q2, q3, [sp, #128]\n  ldp q4, q5, [sp, #160]\n  ldp q6, q7, [sp, #192]\n"
        "  ldr x8, [sp, #80]\n"
        "  ldp x0, x1, [sp, #16]\n  ldp x2, x3, [sp, #32]\n  ldp x4, x5, [sp, #48]\n  ldp x6, x7, [sp, #64]\n"
        "  ldp x29, x30, [sp], #224\n"
        "  br x16\n"
        ".size ht_forward_first, .-ht_forward_first\n");
#endif
