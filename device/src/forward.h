/* forward.h: entry points that the real library answers.
 *
 * HT_FORWARD(name) exports `name` as a jump to the real library's function of that name. It is found on the
 * first call, every register and the stack as the caller left them, so that no prototype is needed.
 * For functions that need no device: descriptors, versions, texts. Where the real library is not
 * loaded, the file's HT_FORWARD_ABSENT is jumped to instead.
 *
 *     #define HT_FORWARD_LIBRARY "libcudnn.so.9"
 *     #define HT_FORWARD_ABSENT cudnn_absent
 *     HT_FORWARD(cudnnCreateTensorDescriptor)
 *
 * A library's name that ends in "so." is whichever version of it is loaded.
 * HT_FORWARD_TO(library, name, absent) is the same where a file forwards to several.
 *
 * HT_REAL(name) is the real function as a pointer of the type of `name`; NULL where there is none. */
#ifndef HT_FORWARD_H
#define HT_FORWARD_H
#include "core.h"

struct ht_forward { /* the jump's code knows where `at` is: it is first */
    void *at;
    const char *library, *name;
    void *absent;
};
void *ht_forward_find(struct ht_forward *forward); /* sets and returns `at` */

#define HT_FORWARD(function) HT_FORWARD_TO(HT_FORWARD_LIBRARY, function, HT_FORWARD_ABSENT)
#define HT_FORWARD_TO(file, function, otherwise) \
    __attribute__((used, visibility("hidden"))) struct ht_forward ht_forward_##function = {0, file, #function, (void *)otherwise}; \
    HT_FORWARD_CODE(function)
#if defined(__x86_64__)
#define HT_FORWARD_CODE(function) \
    __asm__(".text\n.globl " #function "\n.type " #function ", @function\n" #function ":\n" \
            "  endbr64\n" \
            "  movq ht_forward_" #function "(%rip), %r11\n" \
            "  testq %r11, %r11\n" \
            "  je 1f\n" \
            "  jmp *%r11\n" \
            "1: leaq ht_forward_" #function "(%rip), %r11\n" \
            "  jmp ht_forward_first\n" \
            ".size " #function ", .-" #function "\n");
#else
#define HT_FORWARD_CODE(function) \
    __asm__(".text\n.globl " #function "\n.type " #function ", %function\n" #function ":\n" \
            "  hint 34\n" /* bti c */ \
            "  adrp x16, ht_forward_" #function "\n" \
            "  ldr x17, [x16, :lo12:ht_forward_" #function "]\n" \
            "  cbz x17, 1f\n" \
            "  br x17\n" \
            "1: add x16, x16, :lo12:ht_forward_" #function "\n" \
            "  b ht_forward_first\n" \
            ".size " #function ", .-" #function "\n");
#endif

#define HT_REAL(function) \
    ({ \
        static __typeof__(&function) real_; \
        if (!real_) \
            real_ = (__typeof__(&function))ht_real_symbol(HT_FORWARD_LIBRARY, #function); \
        real_; \
    })
#endif
